// SPDX-License-Identifier: Apache-2.0
// Which input of a model that reads texts means what.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ir/port.hpp"
#include "runtime/sequences.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/tokenizer_json.hpp"
#include "tools/models/text_model.hpp"

namespace bertcl::tools {
namespace {

ir::Port port(const std::string& name, ir::DType dtype, ir::Shape shape) {
  return {name, {dtype, std::move(shape)}};
}
ir::Port ids(const std::string& name) {
  return port(name, ir::DType::i64, {ir::Dim::symbol("batch"), ir::Dim::symbol("seq")});
}

plan::Plan plan_of(std::vector<ir::Port> inputs) {
  plan::Plan plan;
  plan.model_inputs = std::move(inputs);
  return plan;
}

const std::vector<std::int64_t> kIds{4, 5, 6}, kTypes{0, 1, 1}, kOffsets{0, 2, 3};

TEST(TextModelInputs, NamesOfHuggingFace) {
  const plan::Plan plan = plan_of({ids("input_ids"), ids("attention_mask"), ids("token_type_ids")});
  check_reads_texts(plan);
  const runtime::Tensors inputs = runtime::padded(plan, {kIds, kTypes, kOffsets});
  EXPECT_EQ(inputs.at("input_ids"), (ir::Tensor::of<std::int64_t>({2, 2}, {4, 5, 6, 0})));
  EXPECT_EQ(inputs.at("attention_mask"), (ir::Tensor::of<std::int64_t>({2, 2}, {1, 1, 1, 0})));
  EXPECT_EQ(inputs.at("token_type_ids"), (ir::Tensor::of<std::int64_t>({2, 2}, {0, 1, 1, 0})));
}

TEST(TextModelInputs, NamesOfTensorFlow) {
  const plan::Plan plan =
      plan_of({port("unique_ids_raw_output___9:0", ir::DType::i64, {ir::Dim::symbol("batch")}),
               ids("segment_ids:0"), ids("input_mask:0"), ids("input_ids:0")});
  check_reads_texts(plan);
  const runtime::Tensors inputs = runtime::padded(plan, {kIds, kTypes, kOffsets});
  EXPECT_EQ(inputs.at("input_ids:0"), (ir::Tensor::of<std::int64_t>({2, 2}, {4, 5, 6, 0})));
  EXPECT_EQ(inputs.at("input_mask:0"), (ir::Tensor::of<std::int64_t>({2, 2}, {1, 1, 1, 0})));
  EXPECT_EQ(inputs.at("segment_ids:0"), (ir::Tensor::of<std::int64_t>({2, 2}, {0, 1, 1, 0})));
  EXPECT_EQ(inputs.at("unique_ids_raw_output___9:0").shape(), ir::Sizes{2});
}

TEST(TextModelInputs, OtherModelsAreRefusedWithTheirInputs) {
  const auto refusal = [](const std::vector<ir::Port>& inputs) {
    return error_of([&] { check_reads_texts(plan_of(inputs)); });
  };
  EXPECT_THAT(refusal({port("pixels", ir::DType::f32, {1, 3, 224, 224})}), HasSubstr("'pixels'"));
  EXPECT_THAT(refusal({ids("attention_mask")}), HasSubstr("no input for token ids"));
}

/// The tokens of each row, by their ids.
runtime::Session counting_session(const std::string& seq) {
  runtime::SessionOptions options;
  options.pad_token_id = [] { return 3; };
  return runtime::Session::compile(
      ir::parse(
          fmt::format(R"(graph g(%input_ids: i64[batch, {0}], %attention_mask: i64[batch, {0}]) {{
  const %padding: i64[] = 3
  %is_padding: bool[batch, {0}] = Equal(%input_ids, %padding)
  %is_token: bool[batch, {0}] = Not(%is_padding)
  %ones: f32[batch, {0}] = Cast(%is_token) {{to = "f32"}}
  %count: f32[batch] = ReduceSum(%ones) {{axes = [1], keepdims = 0}}
  return %count as count
}})",
                      seq)),
      options);
}

TEST(TextModel, PaddingHasTheIdThatTheModelLooksFor) {
  const std::vector<std::int32_t> one{4, 5, 6, 7}, other{8};
  const std::vector<text::Row> rows{{one, 4}, {other, 1}};
  for (const char* seq : {"seq", "6"}) {
    runtime::Session session = counting_session(seq);
    const runtime::Tensors outputs = TextModel(session).run(text::make_batch(rows));
    EXPECT_EQ(outputs.at("count"), (ir::Tensor::of<float>({2}, {4, 1}))) << seq;
  }
}

/// Sums of rows [batch, seq] without a mask.
runtime::Session summing_session(const std::string& seq) {
  return runtime::Session::compile(ir::parse(fmt::format(R"(graph g(%input_ids: i64[batch, {0}]) {{
  const %table: f32[10, 1] = [9, 1, 2, 3, 4, 5, 6, 7, 8, 9]
  %rows: f32[batch, {0}, 1] = Gather(%table, %input_ids) {{axis = 0}}
  %sum: f32[batch, 1] = ReduceSum(%rows) {{axes = [1], keepdims = 0}}
  return %sum as sum
}})",
                                                         seq)));
}

TEST(TextModel, FixedShapes) {
  runtime::Session session = runtime::Session::compile(ir::parse(
      "graph g(%ids: i32[3, 384]) {\n  %y: i32[3, 384] = Neg(%ids)\n  return %y as y\n}"));
  const TextModel model(session);
  EXPECT_EQ(model.fixed_batch(), 3);
  EXPECT_EQ(model.longest_sequence(), 384);
  text::BatchOptions batches;
  model.bound(batches);
  EXPECT_EQ(batches.max_batch, 3);
}

TEST(TextModel, WithoutAMaskTextsOfOneLengthRunTogether) {
  runtime::Session session = summing_session("seq");
  TextModel model(session);
  text::BatchOptions batches;
  model.bound(batches);
  const std::vector<std::size_t> lengths{2, 4, 2, 4, 1};
  EXPECT_THAT(text::group_by_length(lengths, batches),
              ElementsAre(ElementsAre(1, 3), ElementsAre(0, 2), ElementsAre(4)));
  const std::vector<std::int32_t> one{4, 5, 6, 7}, same{1, 1, 1, 1}, other{8};
  EXPECT_EQ(model.run(text::make_batch(std::vector<text::Row>{{one, 4}, {same, 4}})).at("sum"),
            (ir::Tensor::of<float>({2, 1}, {22, 4})));
  EXPECT_EQ(model.run(text::make_batch(std::vector<text::Row>{{one, 4}, {other, 1}})).at("sum"),
            (ir::Tensor::of<float>({2, 1}, {22, 8})))
      << "in two runs";
}

TEST(TextModel, WithoutAMaskAFixedLengthTakesNoShorterText) {
  runtime::Session session = summing_session("4");
  TextModel model(session);
  const std::vector<std::int32_t> whole{4, 5, 6, 7}, shorter{8};
  EXPECT_EQ(model.run(text::make_batch(std::vector<text::Row>{{whole, 4}})).at("sum"),
            (ir::Tensor::of<float>({1, 1}, {22})));
  EXPECT_ERROR(HasSubstr("cannot be padded to 4 tokens"),
               model.run(text::make_batch(std::vector<text::Row>{{shorter, 1}})));
  EXPECT_NO_THROW(model.run(model.small_batch()));
}

/// BERT's of `words` tokens, "w4", .. after its own, and added tokens with the next ids.
text::Tokenizer word_tokenizer(int words, const std::vector<std::string>& added) {
  std::map<std::string, int> vocabulary;
  for (int id = 4; id < words; ++id) vocabulary["w" + std::to_string(id)] = id;
  nlohmann::json json = tests::bert_tokenizer_json(vocabulary);
  for (const std::string& token : added)
    json["added_tokens"].push_back({{"id", words++}, {"content", token}, {"special", true}});
  const tests::ScratchFolder folder;
  folder.write("tokenizer.json", json.dump());
  return text::Tokenizer::from_file(folder / "tokenizer.json");
}

TEST(TextModel, ATokenAddedBeyondTheTableIsAnErrorOfTheTextsThatHaveIt) {
  runtime::Session session = summing_session("seq");
  TextModel model(session);
  const text::Tokenizer tokenizer = word_tokenizer(10, {"<image>", "<audio>"});
  EXPECT_EQ(tokenizer.vocabulary_size(), 12u);
  EXPECT_EQ(tokenizer.model_vocabulary_size(), 10u);
  model.check_vocabulary(tokenizer);
  const auto run = [&](const char* text) {
    const std::vector<std::int32_t> ids = tokenizer.encode(text);
    return model.run(text::make_batch(std::vector<text::Row>{{ids, ids.size()}})).at("sum");
  };
  EXPECT_EQ(run("w4 w9"), (ir::Tensor::of<float>({1, 1}, {13})));
  EXPECT_ERROR(AllOf(HasSubstr("'<audio>'"), HasSubstr("token 11"), HasSubstr("10 rows")),
               run("w4 <audio>"));
  EXPECT_ERROR(AllOf(HasSubstr("11 tokens"), HasSubstr("10 rows")),
               model.check_vocabulary(word_tokenizer(11, {})));
}

}  // namespace
}  // namespace bertcl::tools
