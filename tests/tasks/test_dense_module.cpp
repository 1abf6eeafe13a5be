// SPDX-License-Identifier: Apache-2.0
// What is read from the folder of a Dense module.
#include "tasks/model_files/dense_module.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include "npz/safetensors.hpp"
#include "tests/support/matchers.hpp"
#include "tests/tasks/support.hpp"

namespace bertcl::tasks {
namespace {

namespace fs = std::filesystem;

class DenseModule : public testing::Test {
 protected:
  DenseModule() { write("{}", {{"linear.weight", weight_}, {"linear.bias", bias_}}); }
  void write(const std::string& config, const npz::Arrays& arrays) const {
    fs::create_directories(folder_ / "2_Dense");
    std::ofstream(folder_ / "2_Dense/config.json") << config;
    std::ofstream(folder_ / "2_Dense/model.safetensors", std::ios::binary)
        << npz::format_safetensors(arrays);
  }
  ir::DenseLayer read() const { return dense_modules({folder_ / "2_Dense"})().at(0); }
  std::string refusal() const {
    return error_of([&] { read(); });
  }
  std::string refusal(const std::string& config) const {
    write(config, {{"linear.weight", weight_}});
    return refusal();
  }
  std::string refusal(const npz::Arrays& arrays) const {
    write("{}", arrays);
    return refusal();
  }
  const tests::ScratchFolder folder_;
  const ir::Tensor weight_ = ir::Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const ir::Tensor bias_ = ir::Tensor::of<float>({2}, {7, 8});
};

TEST_F(DenseModule, WeightsAreTransposed) {
  const ir::DenseLayer layer = read();
  EXPECT_EQ(layer.weight.shape(), (ir::Sizes{3, 2}));
  EXPECT_THAT(layer.weight.to_doubles(), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(layer.bias->to_doubles(), ElementsAre(7, 8));
  EXPECT_EQ(layer.activation, "Tanh") << "where config.json names none";
  write("{}", {{"linear.weight", weight_.converted(ir::DType::bf16)}});
  EXPECT_THAT(read().weight.to_doubles(), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_FALSE(read().bias);
}

TEST_F(DenseModule, ActivationsHaveTheirNamesInTorch) {
  const auto activation = [&](const std::string& name) {
    write(R"({"activation_function": "torch.nn.modules.)" + name + "\"}",
          {{"linear.weight", weight_}});
    return read().activation;
  };
  EXPECT_EQ(activation("linear.Identity"), "");
  EXPECT_EQ(activation("activation.Tanh"), "Tanh");
  EXPECT_EQ(activation("activation.ReLU"), "Relu");
  EXPECT_EQ(activation("activation.GELU"), "Gelu");
  EXPECT_EQ(activation("activation.Sigmoid"), "Sigmoid");
}

TEST_F(DenseModule, WhatIsWrongIsNamed) {
  EXPECT_THAT(refusal("[]"), HasSubstr("2_Dense/config.json: "));
  EXPECT_THAT(refusal("{"), HasSubstr("2_Dense/config.json: "));
  for (const char* other : {"torch.nn.modules.activation.Mish", "mine.ReLU"})
    EXPECT_THAT(refusal(R"({"activation_function": ")" + std::string(other) + "\"}"),
                HasSubstr("activation_function is '" + std::string(other) +
                          "', which is not supported (supported: Identity"));
  EXPECT_THAT(refusal(R"({"activation_function": 1})"),
              HasSubstr("activation_function is of type number"));
  EXPECT_THAT(refusal(R"({"module_input_name": "token_embeddings"})"),
              HasSubstr("module_input_name is 'token_embeddings', which is not supported"));
  EXPECT_THAT(refusal(R"({"use_residual": true})"), HasSubstr("use_residual is not supported"));
  EXPECT_THAT(refusal(R"({"bias": true})"),
              HasSubstr("bias is true, but model.safetensors has no"));
  EXPECT_THAT(refusal(R"({"in_features": 4})"),
              HasSubstr("in_features is 4, but the weights have 3"));
  EXPECT_THAT(refusal(R"({"out_features": 3})"),
              HasSubstr("out_features is 3, but the weights have 2"));
  EXPECT_THAT(refusal(npz::Arrays{}), HasSubstr("has no tensor 'linear.weight'"));
  EXPECT_THAT(refusal(npz::Arrays{{"linear.weight", weight_.converted(ir::DType::i32)}}),
              HasSubstr("'linear.weight' is i32[2, 3], expected floats in two axes"));
  EXPECT_THAT(refusal(npz::Arrays{{"linear.weight", ir::Tensor::zeros(ir::DType::f32, {0, 3})}}),
              HasSubstr("'linear.weight' is f32[0, 3], expected floats in two axes"));
  EXPECT_THAT(refusal(npz::Arrays{{"linear.weight", weight_}, {"linear.bias", weight_}}),
              HasSubstr("'linear.bias' is f32[2, 3], expected floats in one axis"));
  const ir::Tensor wide = ir::Tensor::of<float>({3}, {1, 2, 3});
  EXPECT_THAT(refusal(npz::Arrays{{"linear.weight", weight_}, {"linear.bias", wide}}),
              HasSubstr("'linear.bias' has 3 elements, expected 2"));
  EXPECT_THAT(refusal(npz::Arrays{{"linear.weight", weight_}, {"residual.weight", weight_}}),
              HasSubstr("holds 'residual.weight', which is not supported"));
  fs::remove(folder_ / "2_Dense/model.safetensors");
  EXPECT_THAT(refusal(), HasSubstr("2_Dense/model.safetensors: is missing"));
  fs::remove(folder_ / "2_Dense/config.json");
  EXPECT_THAT(refusal(), HasSubstr("2_Dense/config.json: is missing"));
}

TEST_F(DenseModule, WhatConfigurationsMaySay) {
  write(R"({"in_features": 3, "out_features": 2, "bias": true, "use_residual": false,
      "module_input_name": "sentence_embedding", "module_output_name": null})",
        {{"linear.weight", weight_}, {"linear.bias", bias_}});
  EXPECT_EQ(read().activation, "Tanh");
  EXPECT_FALSE(dense_modules({}));
}

}  // namespace
}  // namespace bertcl::tasks
