// SPDX-License-Identifier: Apache-2.0
// What the inputs of a model may be called and how they may be typed.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "bertcl/error.hpp"
#include "encoder.hpp"
#include "ops/interpret.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::runtime {
namespace {

constexpr std::int64_t batch = 2, seq = 5;
const std::vector<float> mask_values{1, 1, 1, 1, 1, 1, 1, 0, 0, 0};

Tensors inputs_with(ir::DType mask_type, const std::vector<float>& mask) {
  std::vector<float> x(batch * seq * 4);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(3 * i));
  return {{"x", ir::Tensor::of({batch, seq, 4}, std::move(x))},
          {"mask", ir::Tensor::of<float>({batch, seq}, mask).converted(mask_type)}};
}

void expect_rows_of_interpreter(const ir::Graph& graph, Session& session, const Tensors& inputs) {
  const auto expected = ops::interpret(graph, inputs);
  const Tensors outputs = session.run(inputs);
  ASSERT_EQ(outputs.at("y").shape(), (ir::Sizes{batch, seq, 4}));
  const auto y = outputs.at("y").as<float>(), e = expected[0].as<float>();
  for (std::size_t i = 0; i < y.size(); ++i)
    EXPECT_NEAR(y[i], mask_values[i / 4] == 0 ? 0.0f : e[i], 1e-5) << "element " << i;
}

// Axes may bear any name, those of the sizes that packing adds as well.
TEST(Inputs, NamesOfAxesMeanNothingToPacking) {
  for (const auto& [b, s] : std::vector<std::pair<std::string, std::string>>{
           {"longest", "batch"}, {"offsets", "tokens"}, {"attention_rows", "longest"}}) {
    SCOPED_TRACE(b + ", " + s);
    Session session = Session::compile(masked_encoder("i64", b, s));
    expect_rows_of_interpreter(masked_encoder("i64", b, s), session,
                               inputs_with(ir::DType::i64, mask_values));
    EXPECT_EQ(session.statistics().tokens, 7);
  }
}

// Where packing leaves them alone, too, but only if they have the shape of the ids.
TEST(Inputs, AMaskAndTypesOfPaddedPlansMayBeLeftOut) {
  const auto compiled = [](const std::string& mask) {
    return Session::compile(ir::parse("graph g(%input_ids: i64[batch, seq], %attention_mask: " +
                                      mask + R"(, %token_type_ids: i64[batch, seq]) {
  %i: f32[batch, seq] = Cast(%input_ids) {to = "f32"}
  %m: f32[batch, seq] = Cast(%attention_mask) {to = "f32"}
  %t: f32[batch, seq] = Cast(%token_type_ids) {to = "f32"}
  %a: f32[batch, seq] = Mul(%i, %m)
  %y: f32[batch, seq] = Sub(%a, %t)
  return %y as y
})"));
  };
  const Tensors ids = {{"input_ids", ir::Tensor::of<std::int64_t>({2, 2}, {5, 6, 7, 0})}};
  for (const char* mask : {"i64[batch, seq]", "i32[batch, seq]"}) {
    const Tensors outputs = compiled(mask).run(ids);
    const auto y = outputs.at("y").as<float>();
    EXPECT_EQ(std::vector(y.begin(), y.end()), (std::vector<float>{5, 6, 7, 0}));
  }
  Tensors wrong = ids;
  wrong["token_type_ids"] = ir::Tensor::of<float>({2, 2}, {0, 0.5f, 0, 0});
  EXPECT_THROW(compiled("i64[batch, seq]").run(wrong), Error);
  Session other = compiled("f32[1, seq]");
  EXPECT_THROW(other.run(ids), Error);
}

// Nor where packing reads the shape of the batch off the mask, since the ids do not only go into a
// table.
TEST(Inputs, AMaskThatGivesTheBatchMayBeLeftOut) {
  const auto compiled = [] {
    return Session::compile(
        ir::parse(R"(graph g(%input_ids: i64[batch, seq], %attention_mask: i64[batch, seq]) {
  %i: f32[batch, seq] = Cast(%input_ids) {to = "f32"}
  %x: f32[batch, seq, 1] = Unsqueeze(%i) {axes = [2]}
  %0: f32[batch, seq, 1, 1] = Reshape(%x)
  %q: f32[batch, 1, seq, 1] = Transpose(%0) {perm = [0, 2, 1, 3]}
  %k: f32[batch, 1, 1, seq] = Transpose(%0) {perm = [0, 2, 3, 1]}
  %v: f32[batch, 1, seq, 1] = Transpose(%0) {perm = [0, 2, 1, 3]}
  %1: f32[batch, 1, seq, seq] = MatMul(%q, %k)
  const %low: f32[] = -10000  const %one: f32[] = 1
  %2: i64[batch, 1, 1, seq] = Unsqueeze(%attention_mask) {axes = [1, 2]}
  %3: f32[batch, 1, 1, seq] = Cast(%2) {to = "f32"}
  %4: f32[batch, 1, 1, seq] = Sub(%one, %3)
  %5: f32[batch, 1, 1, seq] = Mul(%4, %low)
  %6: f32[batch, 1, seq, seq] = Add(%1, %5)
  %p: f32[batch, 1, seq, seq] = Softmax(%6) {axis = -1}
  %7: f32[batch, 1, seq, 1] = MatMul(%p, %v)
  %8: f32[batch, seq, 1, 1] = Transpose(%7) {perm = [0, 2, 1, 3]}
  %y: f32[batch, seq, 1] = Reshape(%8)
  return %y as y
})"));
  };
  Session session = compiled();
  const auto reads_mask = [](const plan::Input& in) {
    return in.kind == plan::InputKind::packed_ids && in.source == "attention_mask";
  };
  ASSERT_TRUE(std::ranges::any_of(session.plan().inputs, reads_mask));
  Tensors inputs = {{"input_ids", ir::Tensor::of<std::int64_t>({2, 3}, {1, 2, 0, 1, 1, 2})}};
  const Tensors found = session.run(inputs);
  inputs["attention_mask"] = ir::Tensor::of<std::int64_t>({2, 3}, {1, 1, 1, 1, 1, 1});
  const Tensors expected = session.run(inputs);
  EXPECT_TRUE(std::ranges::equal(found.at("y").as<float>(), expected.at("y").as<float>()));
  inputs.erase("input_ids");
  EXPECT_THROW(session.run(inputs), Error);
}

// The file asks for as many first keys as there are ones, wherever these are.
TEST(Inputs, AMaskMayBeCounted) {
  const ir::Graph graph = masked_encoder("i64", "batch", "seq", true);
  Session session = Session::compile(masked_encoder("i64", "batch", "seq", true));
  ASSERT_EQ(session.plan().steps.size(), 3u) << "pack, attention, unpack";
  expect_rows_of_interpreter(graph, session, inputs_with(ir::DType::i64, mask_values));
  EXPECT_EQ(session.statistics().tokens, 7);
  const Tensors holes =
      inputs_with(ir::DType::i64, std::vector<float>{0, 1, 0, 1, 1, 1, 0, 0, 0, 1});
  const auto expected = ops::interpret(graph, holes);
  const Tensors outputs = session.run(holes);
  const auto y = outputs.at("y").as<float>(), e = expected[0].as<float>();
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], e[i], 1e-5) << "element " << i;
  EXPECT_EQ(session.statistics().tokens, 10);
}

/// One layer whose mask hides the rows of padding, too: those of the embeddings are zero, and those
/// of attention attend all keys alike or, where the mask `keeps` keys alone, those of texts.
ir::Graph encoder_of_masked_rows(
    const std::string& end = "return %y as y",
    const std::string& keeps = "bool[batch, 1, seq, seq] = Cast(%both)") {
  return ir::parse(R"(graph g(%x: f32[batch, seq, 4], %mask: i64[batch, seq]) {
  const %gamma: f32[4] = [1, 0.5, 2, 1]  const %beta: f32[4] = [0.5, 0, -1, 1]
  const %w: f32[4, 4] = [1, 0, 0.5, 0, -1, 1, 0, 0.25, 0, 0, 1, -0.5, 0.5, 0, 0, 1]
  const %low: f32[] = -3.4028235e38
  %n: f32[batch, seq, 4] = LayerNormalization(%x, %gamma, %beta) {axis = -1, epsilon = 1e-5}
  %column: i64[batch, seq, 1] = Unsqueeze(%mask) {axes = [2]}
  %f: f32[batch, seq, 1] = Cast(%column) {to = "f32"}
  %z: f32[batch, seq, 4] = Mul(%n, %f)
  %key: i64[batch, 1, 1, seq] = Unsqueeze(%mask) {axes = [1, 2]}
  %row: i64[batch, 1, seq, 1] = Unsqueeze(%mask) {axes = [1, 3]}
  %both: i64[batch, 1, seq, seq] = Mul(%row, %key)
  %keep: )" + keeps +
                   R"( {to = "bool"}
  %h: f32[batch, seq, 4] = MatMul(%z, %w)
  %0: f32[batch, seq, 2, 2] = Reshape(%h)
  %q: f32[batch, 2, seq, 2] = Transpose(%0) {perm = [0, 2, 1, 3]}
  %k: f32[batch, 2, 2, seq] = Transpose(%0) {perm = [0, 2, 3, 1]}
  %v: f32[batch, 2, seq, 2] = Transpose(%0) {perm = [0, 2, 1, 3]}
  %1: f32[batch, 2, seq, seq] = MatMul(%q, %k)
  %2: f32[batch, 2, seq, seq] = Where(%keep, %1, %low)
  %p: f32[batch, 2, seq, seq] = Softmax(%2) {axis = -1}
  %3: f32[batch, 2, seq, 2] = MatMul(%p, %v)
  %4: f32[batch, seq, 2, 2] = Transpose(%3) {perm = [0, 2, 1, 3]}
  %5: f32[batch, seq, 4] = Reshape(%4)
  %y: f32[batch, seq, 4] = Add(%5, %z)
  )" + end + "\n}");
}

TEST(Inputs, RowsThatTheMaskHidesAreComputedWhereTheyCount) {
  const std::string mean = R"(%m: f32[batch, 4] = ReduceMean(%y) {axes = [1], keepdims = 0}
  return %m as y)";
  for (const char* keeps :
       {"bool[batch, 1, seq, seq] = Cast(%both)", "bool[batch, 1, 1, seq] = Cast(%key)"}) {
    Session session = Session::compile(encoder_of_masked_rows(mean, keeps));
    const Tensors inputs = inputs_with(ir::DType::i64, mask_values);
    const auto expected = ops::interpret(encoder_of_masked_rows(mean, keeps), inputs);
    const Tensors outputs = session.run(inputs);
    const auto y = outputs.at("y").as<float>(), e = expected[0].as<float>();
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], e[i], 1e-5) << keeps << i;
  }
}

TEST(Inputs, AMaskMayHideRowsToo) {
  for (const bool drop_padding : {true, false}) {
    SessionOptions options;
    options.drop_padding = drop_padding;
    Session session = Session::compile(encoder_of_masked_rows(), options);
    const auto& steps = session.plan().steps;
    EXPECT_EQ(std::any_of(steps.begin(), steps.end(),
                          [](const plan::Step& step) { return step.op == "attention"; }),
              drop_padding);
    for (const std::vector<float>& mask :
         {mask_values, {0, 0, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 0, 1, 1, 0, 0, 1, 0, 1, 1}}) {
      const Tensors inputs = inputs_with(ir::DType::i64, mask);
      const auto expected = ops::interpret(encoder_of_masked_rows(), inputs);
      const Tensors outputs = session.run(inputs);
      const auto y = outputs.at("y").as<float>(), e = expected[0].as<float>();
      for (std::size_t i = 0; i < y.size(); ++i)
        if (mask[i / 4] != 0 || !drop_padding) {
          EXPECT_NEAR(y[i], e[i], 1e-5) << "element " << i << ", mask from " << mask[0] << mask[1];
        }
    }
  }
}

TEST(Inputs, AMaskMayBeFloat) {
  Session session = Session::compile(masked_encoder("f32"));
  expect_rows_of_interpreter(masked_encoder("f32"), session,
                             inputs_with(ir::DType::f32, mask_values));
  EXPECT_EQ(session.statistics().tokens, 7);  // padding is dropped as with integers
}

// NVIDIA takes 65,535 groups along another axis than the first: heads do not multiply sequences.
TEST(Inputs, ManySequencesFitTheGridOfGroups) {
  SessionOptions options;
  options.disabled_kernels = "x86";
  const Session session = Session::compile(masked_encoder("f32"), options);
  const auto& steps = session.plan().steps;
  const auto step = std::find_if(steps.begin(), steps.end(),
                                 [](const plan::Step& s) { return s.op == "attention"; });
  ASSERT_NE(step, steps.end());
  ASSERT_EQ(step->variant, "group");
  const ir::Bindings sizes{{"$longest", 70}, {"$batch", 60'000}};
  std::vector<std::int64_t> global;
  for (const plan::SizeExpr& size : step->global) global.push_back(size.evaluate(sizes));
  const std::int64_t blocks = step->alternatives.empty() ? 3 : 2;  // of 64 rows or 32
  EXPECT_EQ(global, (std::vector<std::int64_t>{256 * blocks, 2, 60'000}));
}

TEST(Inputs, AFloatMaskOfFractionsIsRefusedByName) {
  Session session = Session::compile(masked_encoder("f32"));
  std::vector<float> mask = mask_values;
  mask[6] = 0.5f;
  EXPECT_ERROR(HasSubstr("input 'mask' holds 0.5 at element 6"),
               session.run(inputs_with(ir::DType::f32, mask)));
}

TEST(Inputs, AnIntegerMaskIsNotGivenAsFloat) {
  Session session = Session::compile(masked_encoder("i64"));
  EXPECT_THROW(session.run(inputs_with(ir::DType::f32, mask_values)), Error);
}

constexpr std::string_view embedding =
    R"(graph g(%ids: i64[batch, seq], %position_ids: i64[batch, seq]) {
  const %word: f32[3, 4] = [0.5, -1, 2, 0.25, 1, 3, -2, 0, -0.5, 0.75, 1.5, 1]
  %w: f32[batch, seq, 4] = Gather(%word, %ids) {axis = 0}
  const %position: f32[2, 4] = [1, 2, 3, 4, -4, 3, -2, 1]
  %p: f32[batch, seq, 4] = Gather(%position, %position_ids) {axis = 0}
  %s: f32[batch, seq, 4] = Add(%w, %p)
  const %gamma: f32[4] = [1, 1, 2, 2]  const %beta: f32[4] = [0, 1, 0, 1]
  %y: f32[batch, seq, 4] = LayerNormalization(%s, %gamma, %beta) {axis = -1, epsilon = 0.001}
  return %y as y
})";

// The table is shorter than the sequences: only the positions given count.
TEST(Inputs, PositionsOfTheCallerAreTaken) {
  const ir::Graph graph = ir::parse(embedding);
  Session session = Session::compile(ir::parse(embedding));
  std::vector<std::int64_t> ids, positions;
  for (std::int64_t i = 0; i < batch * seq; ++i) {
    ids.push_back(i % 3);
    positions.push_back(i * i % 2);
  }
  Tensors inputs{{"ids", ir::Tensor::of({batch, seq}, std::move(ids))},
                 {"position_ids", ir::Tensor::of({batch, seq}, std::move(positions))}};
  const auto expected = ops::interpret(graph, inputs);
  const Tensors outputs = session.run(inputs);
  const auto y = outputs.at("y").as<float>(), e = expected[0].as<float>();
  ASSERT_EQ(y.size(), e.size());
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], e[i], 1e-5) << "element " << i;
  EXPECT_EQ(session.plan().steps.front().op, "embed_norm");

  inputs["position_ids"] = ir::Tensor::of({batch, seq}, std::vector<std::int64_t>(batch * seq, 2));
  EXPECT_THROW(session.run(inputs), Error);  // beyond the table
  inputs.erase("position_ids");
  EXPECT_THROW(session.run(inputs), Error);
}

// Whatever their lower half is: 2^32 + 1 is not 1.
TEST(Inputs, IdsAndPositionsHave64Bits) {
  const std::int64_t one = 1;
  const Tensors right{{"ids", ir::Tensor::of({1, 3}, std::vector<std::int64_t>{0, 1, 2})},
                      {"position_ids", ir::Tensor::of({1, 3}, std::vector<std::int64_t>{0, 1, 0})}};
  // As one kernel for packed tokens, and by Gather of its own.
  for (const char* disabled : {"", "pack_tokens"}) {
    SessionOptions options;
    if (*disabled) options.disabled_passes = {disabled};
    Session session = Session::compile(ir::parse(embedding), options);
    const Tensors expected = session.run(right);
    for (const char* input : {"ids", "position_ids"})
      for (const std::int64_t value : {one << 31, one << 32, (one << 32) + 1, (one << 40) + 1,
                                       -(one << 32) + 1, -(one << 40), INT64_MAX, INT64_MIN}) {
        Tensors wrong = right;
        std::vector<std::int64_t> ids = wrong[input].to_ints();
        ids[1] = value;
        wrong[input] = ir::Tensor::of({1, 3}, ids);
        EXPECT_THROW(session.run(wrong), Error) << input << " " << value << " " << disabled;
        EXPECT_EQ(session.run(right), expected);
      }
  }
}

// A table of a mapped file lies at any address; kernels of work-groups load whole vectors of it.
TEST(Inputs, EmbeddingTablesMayLieAtAnyAddress) {
  const auto graph_of = [] {
    ir::Graph graph = ir::parse(embedding);
    ir::Value* word = graph.find_value("word");
    std::vector<float> values(12);  // no halves, or it would be copied as such
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
    const auto content = std::as_bytes(std::span(values));
    auto file = std::make_shared<std::vector<std::byte>>(content.size() + 1);
    std::memcpy(file->data() + 1, content.data(), content.size());
    word->constant = ir::Tensor::view(ir::DType::f32, {3, 4}, file, std::span(*file).subspan(1),
                                      ir::Memory::anonymous);
    return graph;
  };
  const Tensors inputs{
      {"ids", ir::Tensor::of({1, 4}, std::vector<std::int64_t>{2, 0, 1, 2})},
      {"position_ids", ir::Tensor::of({1, 4}, std::vector<std::int64_t>{0, 1, 0, 1})}};
  const auto expected = ops::interpret(graph_of(), inputs);
  for (const char* disabled : {"", "rows"}) {
    SessionOptions options;
    options.disabled_kernels = disabled;
    Session session = Session::compile(graph_of(), options);
    ASSERT_EQ(session.plan().steps.front().op, "embed_norm");
    const Tensors outputs = session.run(inputs);
    const auto y = outputs.at("y").as<float>(), e = expected[0].as<float>();
    ASSERT_EQ(y.size(), e.size());
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], e[i], 1e-5) << "element " << i;
  }
}

// The last of equal values, as ONNX has it with select_last_index.
TEST(Operators, ArgMaxTakesTheFirstOrTheLast) {
  const ir::Tensor x = ir::Tensor::of<float>({2, 5}, {1, 7, 3, 7, 2, -4, -4, -4, -4, -4});
  for (const ir::DType type : {ir::DType::f32, ir::DType::i32, ir::DType::i64})
    for (const std::int64_t last : {0, 1}) {
      const std::string text = fmt::format(R"(graph g(%x: {}[n, 5]) {{
  %y: i64[n, 1] = ArgMax(%x) {{axis = 1, keepdims = 1, select_last_index = {}}}
  return %y as y
}})",
                                           ir::name_of(type), last);
      Session session = Session::compile(ir::parse(text));
      const Tensors inputs{{"x", x.converted(type)}};
      const auto expected = ops::interpret(ir::parse(text), inputs);
      EXPECT_EQ(session.run(inputs).at("y"), expected[0])
          << ir::name_of(type) << ", select_last_index " << last;
    }
}

}  // namespace
}  // namespace bertcl::runtime
