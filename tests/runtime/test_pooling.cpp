// SPDX-License-Identifier: Apache-2.0
// Pooling at the end of a model: of the hidden states of the same session without it.
#include "runtime/pooling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "encoder.hpp"
#include "ir/text.hpp"
#include "support/option_name.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::runtime {
namespace {

constexpr std::int64_t kWidth = 4;

Session session_with(const std::optional<Pooling>& pooling, bool drop_padding = true) {
  SessionOptions options;
  options.pooling = pooling;
  options.drop_padding = drop_padding;
  return Session::compile(masked_encoder("i64"), options);
}

Tensors inputs_of(const std::vector<std::vector<std::int64_t>>& masks) {
  const auto batch = static_cast<std::int64_t>(masks.size());
  const auto seq = static_cast<std::int64_t>(masks[0].size());
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(batch * seq * kWidth));
  for (float& value : x) value = normal(random);
  std::vector<std::int64_t> mask;
  for (const auto& row : masks) mask.insert(mask.end(), row.begin(), row.end());
  return {{"x", ir::Tensor::of({batch, seq, kWidth}, x)},
          {"mask", ir::Tensor::of({batch, seq}, mask)}};
}

/// By plain loops.
std::vector<float> pooled(const ir::Tensor& hidden, const ir::Tensor& mask,
                          const std::string& kind) {
  std::vector<float> all;
  const auto seq = static_cast<std::size_t>(mask.shape()[1]);
  for (std::size_t b = 0; b < static_cast<std::size_t>(mask.shape()[0]); ++b)
    for (std::size_t i = 0; i < kWidth; ++i) {
      std::vector<float> values;
      for (std::size_t s = 0; s < seq; ++s)
        if (mask.as<std::int64_t>()[b * seq + s])
          values.push_back(hidden.as<float>()[(b * seq + s) * kWidth + i]);
      float sum = 0;
      for (const float value : values) sum += value;
      all.push_back(kind == "mean"  ? sum / static_cast<float>(values.size())
                    : kind == "max" ? *std::ranges::max_element(values)
                    : kind == "cls" ? values.front()
                                    : values.back());
    }
  return all;
}

TEST(Pooling, IsThatOfTheHiddenStatesUnderAnyMask) {
  const std::vector<std::vector<std::vector<std::int64_t>>> batches = {
      {{1}},
      {{1, 1, 1, 0, 0}, {1, 0, 0, 0, 0}, {1, 1, 1, 1, 1}},
      {{0, 1, 1, 0, 1}, {0, 0, 0, 1, 0}}};
  Session plain = session_with(std::nullopt);
  for (const char* kind : {"mean", "max", "cls", "last"})
    for (const bool drop : {true, false}) {
      Session session = session_with(Pooling{kind}, drop);
      ASSERT_EQ(session.outputs().size(), 1u);
      EXPECT_EQ(session.outputs()[0].name, kPooledOutput);
      const auto& steps = session.plan().steps;
      EXPECT_EQ(std::ranges::count_if(steps, [](const auto& step) { return step.op == "pool"; }),
                1);
      for (const auto& masks : batches) {
        const Tensors inputs = inputs_of(masks);
        const auto expected = pooled(plain.run(inputs).at("y"), inputs.at("mask"), kind);
        const ir::Tensor found = session.run(inputs).at(kPooledOutput);
        ASSERT_EQ(found.shape(), (ir::Sizes{static_cast<std::int64_t>(masks.size()), kWidth}));
        for (std::size_t i = 0; i < expected.size(); ++i)
          EXPECT_NEAR(found.as<float>()[i], expected[i], 1e-6) << kind << " " << i;
      }
    }
}

// Models that are converted to fp16 as a whole have outputs in it.
TEST(Pooling, IsInF32WhateverTheTypeOfTheOutputs) {
  const auto compiled = [](ir::DType type, const std::optional<Pooling>& pooling,
                           const char* result) {
    SessionOptions options;
    options.pooling = pooling;
    return Session::compile(ir::parse(fmt::format(
                                R"(graph g(%x: f32[batch, seq, 4], %mask: i64[batch, seq]) {{
  %a: f32[batch, seq, 4] = attention(%x, %x, %x, %mask) {{heads = 1, mask_is_length = 1, p_type = "f32", scale = 0.5}}
  %y: {0}[batch, seq, 4] = Cast(%a) {{to = "{0}"}}
  %v: {0}[batch, 4] = ReduceMax(%y) {{axes = [1], keepdims = 0}}
  return %{1}
}})",
                                ir::name_of(type), result)),
                            options);
  };
  for (const ir::DType type : {ir::DType::f16, ir::DType::bf16}) {
    const Tensors inputs = inputs_of({{1, 1, 1, 0, 0}, {1, 0, 0, 0, 0}});
    const auto values = [&](const std::optional<Pooling>& pooling, const char* result,
                            const char* name) {
      Session session = compiled(type, pooling, result);
      return session.run(inputs).at(name);
    };
    // Within what the rounding of the outputs changes.
    const auto near = [](const auto& expected) { return Pointwise(FloatNear(0.005f), expected); };
    const ir::Tensor hidden = values(std::nullopt, "y as y", "y").converted(ir::DType::f32);
    const ir::Tensor found = values(Pooling{"mean"}, "y as y", kPooledOutput);
    EXPECT_THAT(found.as<float>(), near(pooled(hidden, inputs.at("mask"), "mean")));
    const ir::Tensor own = values(std::nullopt, "v as v", "v").converted(ir::DType::f32);
    const ir::Tensor taken = values(Pooling{""}, "v as sentence_embedding", kPooledOutput);
    EXPECT_THAT(taken.as<float>(), near(own.as<float>()));
  }
}

// As in the files of ONNX Runtime's optimizer, whose attention takes as many first keys.
TEST(Pooling, ReadsTheMaskWhereAttentionCountsItsOnes) {
  const auto compiled = [](const std::string& of_mask, const std::string& result) {
    return Session::compile(ir::parse(fmt::format(
        R"(graph g(%x: f32[batch, seq, 4], %mask: {}[batch, seq]) {{
  %y: f32[batch, seq, 4] = attention(%x, %x, %x, %mask) {{heads = 1, mask_is_length = 1, p_type = "f32", scale = 0.5}}
  %p: f32[batch, 4] = pool(%y, %mask) {{kind = "mean"}}
  return %{}
}})",
        of_mask, result)));
  };
  for (const ir::DType type : {ir::DType::i64, ir::DType::i32, ir::DType::f32}) {
    Session plain = compiled(std::string(ir::name_of(type)), "y as y");
    Session session = compiled(std::string(ir::name_of(type)), "p as p");
    for (const auto& masks : std::vector<std::vector<std::vector<std::int64_t>>>{
             {{1, 1, 1, 0, 0}, {1, 0, 0, 0, 0}}, {{0, 1, 1, 0, 1}, {0, 0, 0, 1, 0}}}) {
      Tensors inputs = inputs_of(masks);
      const ir::Tensor mask = inputs.at("mask");
      inputs["mask"] = mask.converted(type);
      const auto expected = pooled(plain.run(inputs).at("y"), mask, "mean");
      const ir::Tensor found = session.run(inputs).at("p");
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(found.as<float>()[i], expected[i], 1e-6) << ir::name_of(type) << " " << i;
    }
  }
}

TEST(Pooling, HasAMaskWhereAttentionHasNone) {
  for (const std::string kind : {"mean", "max", "cls", "last"}) {
    const auto compiled = [&](const std::string& result) {
      return Session::compile(ir::parse(fmt::format(
          R"(graph g(%x: f32[batch, seq, 4], %mask: i64[batch, seq]) {{
  %y: f32[batch, seq, 4] = attention(%x, %x, %x) {{heads = 1, p_type = "f32", scale = 0.5}}
  %p: f32[batch, 4] = pool(%y, %mask) {{kind = "{}"}}
  return %{}
}})",
          kind, result)));
    };
    Session plain = compiled("y as y"), session = compiled("p as p");
    const Tensors inputs = inputs_of({{1, 1, 1, 0, 0}, {0, 1, 1, 0, 1}});
    const auto expected = pooled(plain.run(inputs).at("y"), inputs.at("mask"), kind);
    const ir::Tensor found = session.run(inputs).at("p");
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(found.as<float>()[i], expected[i], 1e-6) << kind << " " << i;
  }
}

// A model that pools itself: its vectors are taken, cut and normalized.
TEST(Pooling, OfAModelThatDoesItItself) {
  const auto compiled = [](const Pooling& pooling) {
    SessionOptions options;
    options.pooling = pooling;
    return Session::compile(ir::parse(R"(graph g(%x: f32[batch, 3]) {
  %y: f32[batch, 3] = Relu(%x)
  return %y as sentence_embedding
})"),
                            options);
  };
  const Tensors inputs = {{"x", ir::Tensor::of({2, 3}, std::vector<float>{3, 4, 12, 0, 0, 0})}};
  const auto run = [&](const Pooling& pooling) {
    const ir::Tensor found = compiled(pooling).run(inputs).at(kPooledOutput);
    return std::vector<float>(found.as<float>().begin(), found.as<float>().end());
  };
  EXPECT_THAT(run({"", false, 0, false}), ElementsAre(3, 4, 12, 0, 0, 0));
  EXPECT_THAT(run({"mean", true, 0, false}), ElementsAre(3, 4, 12, 0, 0, 0));
  EXPECT_THAT(run({"", false, 2, true}), ElementsAre(FloatEq(0.6f), FloatEq(0.8f), 0, 0));
}

// As bge-m3: a vector of each text and, beside it, vectors of tokens that are not hidden states.
TEST(Pooling, TakesNoOtherVectorsOfTokensForHiddenStates) {
  const auto chosen = [](const Pooling& pooling, const std::string& dense,
                         const std::string& from) {
    ir::Graph graph = ir::parse(fmt::format(R"(graph g(%x: f32[batch, seq, 4]) {{
  %t: f32[batch, seq, 4] = Relu(%x)
  %d: f32[batch, 4] = ReduceMax({}) {{axes = [1], keepdims = 0}}
  return %d as {}, %t as colbert_vecs
}})",
                                            from, dense));
    add_pooling(graph, pooling);
    return ir::print(graph);
  };
  const Pooling of_file{.kind = "cls", .or_own = true};
  for (const char* dense : {"dense_vecs", "dense", "dense_embedding"}) {
    EXPECT_THAT(chosen(of_file, dense, "%x"), HasSubstr("return %d as sentence_embedding"));
    EXPECT_THAT(chosen({""}, dense, "%x"), HasSubstr("return %d as sentence_embedding"));
  }
  EXPECT_THAT(
      error_of([&] { chosen({"cls"}, "dense_vecs", "%x"); }),
      HasSubstr("to pool; omit 'pooling', the model pools itself; the outputs are dense_vecs"));
  EXPECT_THAT(error_of([&] { chosen(of_file, "1256", "%x"); }),
              HasSubstr("the outputs are 1256 f32[batch, 4], colbert_vecs"));
  // BERT's pooler, which reads the hidden states.
  EXPECT_THAT(chosen(of_file, "1256", "%t"), HasSubstr("pool(%t"));
}

TEST(Pooling, WhatIsNotThereIsRefused) {
  const auto refusal = [](const Pooling& pooling) {
    return error_of([&] { session_with(pooling); });
  };
  EXPECT_THAT(refusal({"", false, 0, false}), HasSubstr("no output is a vector [batch, hidden]"));
  EXPECT_THAT(refusal({"", false, 0, false}),
              HasSubstr("or use 'pooling=mean', cls, max or last; the outputs are"));
  use_command_line_names() = true;
  const std::string of_program = refusal({"", false, 0, false});
  use_command_line_names() = false;
  EXPECT_THAT(of_program,
              HasSubstr("or use --pooling mean, cls, max or last (not in eval); the outputs are"));
  EXPECT_THAT(refusal({"sum", false, 0, false}),
              HasSubstr("unknown pooling 'sum' (choose from mean, max, cls, last)"));
  EXPECT_THAT(refusal({"mean", false, 5, false}), HasSubstr("5 dimensions requested"));
  const auto logits = [] {
    SessionOptions options;
    options.pooling = Pooling{""};
    Session::compile(ir::parse(R"(graph g(%x: f32[batch, 3]) {
  %y: f32[batch, 3] = Relu(%x)
  return %y as logits
})"),
                     options);
  };
  EXPECT_THAT(error_of(logits), HasSubstr("no output is a vector [batch, hidden]"))
      << "classes are not a vector";
}

}  // namespace
}  // namespace bertcl::runtime
