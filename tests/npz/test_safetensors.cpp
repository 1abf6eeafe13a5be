// SPDX-License-Identifier: Apache-2.0
// Files of safetensors: what is written is read back, what the library wrote is read, damage is
// refused.
#include "npz/safetensors.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::npz {
namespace {

using ir::DType;
using ir::Tensor;

class Safetensors : public testing::Test {
 protected:
  Arrays loaded(const std::string& content) const {
    const std::filesystem::path path = folder_ / "a.safetensors";
    std::ofstream(path, std::ios::binary) << content;
    return load_safetensors(path);
  }
  std::string refusal(const std::string& content) const {
    return error_of([&] { loaded(content); });
  }
  const tests::ScratchFolder folder_;
};

/// A file with this header and these elements.
std::string file_of(const std::string& header, const std::string& elements) {
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  return length + header + elements;
}

TEST_F(Safetensors, WhatIsWrittenIsReadBack) {
  const Tensor weight = Tensor::of<float>({2, 3}, {1, -2, 3, 4, 5.5f, 6});
  for (const DType dtype :
       {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i64, DType::u8}) {
    const Arrays read = loaded(format_safetensors(
        {{"weight", weight.converted(dtype)}, {"empty", Tensor::zeros(dtype, {0, 4})}}));
    ASSERT_EQ(read.size(), 2u);
    EXPECT_EQ(read.at("weight").dtype(), dtype);
    EXPECT_EQ(read.at("weight").shape(), weight.shape());
    EXPECT_EQ(read.at("weight").to_doubles(), weight.converted(dtype).to_doubles());
    EXPECT_EQ(read.at("empty").shape(), (ir::Sizes{0, 4}));
  }
}

// safetensors.numpy.save({"a": np.float32([1.5, -2])}, {"format": "np"}) of safetensors 0.7.
TEST_F(Safetensors, WhatTheLibraryWroteIsRead) {
  const Arrays read = loaded(file_of(
      R"({"__metadata__":{"format":"np"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"
      "   ",
      std::string("\x00\x00\xc0\x3f\x00\x00\x00\xc0", 8)));
  ASSERT_EQ(read.size(), 1u);
  EXPECT_THAT(read.at("a").to_doubles(), ElementsAre(1.5, -2));
}

TEST_F(Safetensors, DamageIsRefused) {
  const auto entry = [](const std::string& fields) {
    return file_of("{\"a\": {" + fields + "}}", std::string(8, '\0'));
  };
  EXPECT_THAT(refusal("short"), HasSubstr("a.safetensors: not a safetensors file"));
  EXPECT_THAT(refusal(std::string(8, '\xff') + "{}"), HasSubstr("or a truncated one"));
  EXPECT_THAT(refusal(file_of("[]", "")), HasSubstr("its header is not a JSON object"));
  EXPECT_THAT(refusal(file_of("{\"a\": 1}", "")),
              HasSubstr("tensor 'a': its entry in the header is not a JSON object"));
  EXPECT_THAT(refusal(entry(R"("dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8])")),
              HasSubstr("its element type F8_E4M3 is not supported"));
  const std::string deep(100'000, '['), closed(100'000, ']');
  std::string nested = file_of("", "");
  const std::string header = "{\"a\": {\"dtype\": " + deep + closed + "}}";
  for (std::size_t i = 0; i < 8; ++i) nested[i] = static_cast<char>(header.size() >> (8 * i) & 255);
  EXPECT_THAT(refusal(nested + header), HasSubstr("its element type array is not supported"));
  EXPECT_ERROR(HasSubstr("is a directory"), load_safetensors(folder_ / ""));
  for (const char* fields : {R"("dtype": "F32", "shape": [2], "data_offsets": [0, 9])",
                             R"("dtype": "F32", "shape": [2], "data_offsets": [8, 0])",
                             R"("dtype": "F32", "shape": [2], "data_offsets": [0])",
                             R"("dtype": "F32", "shape": [-2], "data_offsets": [0, 8])",
                             R"("dtype": "F32", "data_offsets": [0, 8])"})
    EXPECT_THAT(refusal(entry(fields)), HasSubstr("shape or its data_offsets are invalid"))
        << fields;
  EXPECT_THAT(refusal(entry(R"("dtype": "F32", "shape": [3], "data_offsets": [0, 8])")),
              HasSubstr("its shape needs 12 bytes, its data has 8"));
  const std::string huge = std::to_string(std::int64_t{1} << 62);
  EXPECT_THAT(refusal(entry("\"dtype\": \"F32\", \"shape\": [" + huge + ", " + huge +
                            "], \"data_offsets\": [0, 8]")),
              HasSubstr("its shape overflows"));
  EXPECT_ERROR(HasSubstr("none.safetensors: cannot open"),
               load_safetensors(folder_ / "none.safetensors"));
}

}  // namespace
}  // namespace bertcl::npz
