// SPDX-License-Identifier: Apache-2.0
// Fused attention in plain operators: values, names, and what stays whole.
#include <fmt/format.h>

#include <algorithm>

#include "bertcl/error.hpp"
#include "quant/graph/expand_fused.hpp"
#include "tests/quant/fused_graph.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

using ir::Sizes;

enum class Mask { none, ends, ends_and_starts, keys, rows_and_keys };
constexpr Mask kMasks[] = {Mask::none, Mask::ends, Mask::ends_and_starts, Mask::keys,
                           Mask::rows_and_keys};

/// A mask of this form for `batch` sequences, `rows` and `keys`; "" for none.
std::string add_mask(Fused& f, Mask form, std::int64_t batch, std::int64_t rows, std::int64_t keys,
                     bool symbolic) {
  const auto int32 = onnx::TensorProto::INT32;
  const auto as = [&](const std::vector<std::string>& symbols) {
    return symbolic ? symbols : std::vector<std::string>{};
  };
  switch (form) {
    case Mask::none:
      return "";
    case Mask::ends:
      return f.mask("mask", {batch}, f.integers<std::int32_t>(batch, keys + 1), int32,
                    as({"batch"}));
    case Mask::ends_and_starts:
      return f.mask("mask", {2 * batch}, f.integers<std::int32_t>(2 * batch, keys + 1), int32);
    case Mask::keys:
      return f.mask("mask", {batch, keys}, f.integers<std::int32_t>(batch * keys, 2), int32,
                    as({"batch", "keys"}));
    case Mask::rows_and_keys:
      return f.mask("mask", {batch, rows, keys}, f.integers<std::int32_t>(batch * rows * keys, 2),
                    int32, as({"batch", "rows", "keys"}));
  }
  return "";
}

TEST(ExpandAttention, AttentionOfEveryForm) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    Fused f(seed, seed % 4 == 3 ? 12 : 17);
    const Mask form = kMasks[seed % std::size(kMasks)];
    const std::int64_t batch = 1 + f.below(3), rows = 1 + f.below(7), heads = 1 + f.below(3),
                       size = 1 + f.below(5), value_size = 1 + f.below(5), in = 1 + f.below(9);
    const bool symbolic = form != Mask::ends_and_starts && f.below(2) == 0;
    SCOPED_TRACE(fmt::format("seed {}: {} sequences of {}, {} heads of {} and {}, mask {}", seed,
                             batch, rows, heads, size, value_size, static_cast<int>(form)));
    const bool other_values = f.below(2) == 0;
    const std::int64_t width = heads * (2 * size + (other_values ? value_size : size));
    f.input("x", {batch, rows, in},
            symbolic ? std::vector<std::string>{"batch", "keys", ""} : std::vector<std::string>{});
    // Rows are keys: a mask of both has their symbol twice.
    const std::string mask = add_mask(f, form, batch, rows, rows, symbolic);
    if (symbolic && form == Mask::rows_and_keys)
      f.builder()
          .graph()
          .mutable_input(1)
          ->mutable_type()
          ->mutable_tensor_type()
          ->mutable_shape()
          ->mutable_dim(1)
          ->set_dim_param("keys");
    const std::string bias = f.below(2) == 0 ? f.weight("b", {width}) : "";
    const std::string added = f.below(2) == 0 ? f.weight("added", {1, heads, rows, rows}) : "";
    if (!added.empty() && symbolic) continue;
    auto& g = f.node("Attention", {"x", f.weight("w", {in, width}), bias, mask, "", added}, "y");
    g.set("num_heads", heads);
    if (other_values)
      g.set("qkv_hidden_sizes", Sizes{heads * size, heads * size, heads * value_size});
    if (f.below(2) == 0) g.set("scale", 0.3f);
    if (f.below(2) == 0) g.set("mask_filter_value", -50.0f);
    if (f.below(3) == 0) g.set("unidirectional", 1);
    g.output("y");
    expect_same(f);
  }
}

TEST(ExpandAttention, MultiHeadAttentionOfEveryForm) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    Fused f(seed);
    const Mask form = kMasks[seed % std::size(kMasks)];
    const std::int64_t batch = 1 + f.below(3), rows = 1 + f.below(7), keys = 1 + f.below(7),
                       heads = 1 + f.below(3), size = 1 + f.below(5), value_size = 1 + f.below(5);
    const bool symbolic = form != Mask::ends_and_starts && f.below(2) == 0;
    SCOPED_TRACE(fmt::format("seed {}: {} sequences of {} x {}, {} heads of {} and {}, mask {}",
                             seed, batch, rows, keys, heads, size, value_size,
                             static_cast<int>(form)));
    const auto as = [&](const std::string& extent) {
      return symbolic ? std::vector<std::string>{"batch", extent, ""} : std::vector<std::string>{};
    };
    f.input("q", {batch, rows, heads * size}, as("rows"));
    f.input("k", {batch, keys, heads * size}, as("keys"));
    f.input("v", {batch, keys, heads * value_size}, as("keys"));
    const std::string mask = add_mask(f, form, batch, rows, keys, symbolic);
    const std::string bias =
        f.below(2) == 0 ? f.weight("b", {heads * (2 * size + value_size)}) : "";
    auto& g = f.node("MultiHeadAttention", {"q", "k", "v", bias, mask}, "y");
    g.set("num_heads", heads);
    if (f.below(3) == 0) g.set("unidirectional", 1);
    g.output("y");
    expect_same(f);
  }
}

TEST(ExpandAttention, AttentionOfOnnx) {
  for (const bool divided : {false, true})
    for (const std::string mask : {"", "keep", "none", "added"})
      for (const std::int64_t causal : {0, 1}) {
        SCOPED_TRACE(fmt::format("divided {}, mask '{}', causal {}", divided, mask, causal));
        Fused f(7, 23);
        for (const std::string name : {"q", "k", "v"}) {
          const std::int64_t count = name == "q" ? 5 : 4;
          f.input(name, divided ? Sizes{2, 3, count, 4} : Sizes{2, count, 12});
        }
        if (mask == "keep")
          f.mask(mask, {5, 4}, f.integers<std::int32_t>(20, 2), onnx::TensorProto::BOOL);
        if (mask == "none")  // rows without any key
          f.mask(mask, {5, 4}, std::vector<std::int32_t>(20, 0), onnx::TensorProto::BOOL);
        if (mask == "added") f.input(mask, {2, 1, 5, 4});
        auto& g = f.node("Attention", {"q", "k", "v", mask}, "y", "");
        if (!divided) g.set("q_num_heads", 3).set("kv_num_heads", 3);
        g.set("is_causal", causal);
        g.output("y");
        expect_same(f);
      }
}

TEST(ExpandAttention, QueriesMayShareKeyHeads) {
  for (const bool divided : {false, true})
    for (const std::int64_t key_heads : {1, 2, 3}) {
      SCOPED_TRACE(fmt::format("divided {}, {} key heads", divided, key_heads));
      Fused f(7, 23);
      f.input("q", divided ? Sizes{2, 6, 5, 4} : Sizes{2, 5, 24}, {"batch"});
      for (const std::string name : {"k", "v"}) {
        const std::int64_t size = name == "k" ? 4 : 3;
        f.input(name, divided ? Sizes{2, key_heads, 7, size} : Sizes{2, 7, key_heads * size},
                divided ? std::vector<std::string>{"batch"}
                        : std::vector<std::string>{"batch", "keys"});
      }
      auto& g = f.node("Attention", {"q", "k", "v"}, "y", "");
      if (!divided) g.set("q_num_heads", 6).set("kv_num_heads", key_heads);
      g.set("is_causal", 1);
      g.output("y");
      expect_same(f);
    }
}

/// Queries [2, `queries`, 5, 4] and keys of `keys` heads, where "h" is a symbol and "2h" twice
/// that.
Fused of_heads(const std::string& queries, const std::string& keys) {
  Fused f(7, 23);
  const auto sizes = [](const std::string& heads, std::int64_t rows) {
    return Sizes{2, heads == "h" ? 3 : heads == "2h" ? 6 : std::stoll(heads), rows, 4};
  };
  const auto add = [&](const std::string& name, const std::string& heads, std::int64_t rows) {
    const bool symbolic = heads.ends_with("h");
    f.input(name, sizes(symbolic ? "h" : heads, rows), {"", symbolic ? "h" : ""});
    if (heads != "2h") return name;
    f.node("Concat", {name, name}, name + "2", "");
    f.builder().set("axis", 1);
    return name + "2";
  };
  const std::string q = add("q", queries, 5), k = add("k", keys, 7), v = add("v", keys, 7);
  f.node("Attention", {q, k, v}, "y", "").output("y");
  return f;
}

TEST(ExpandAttention, HeadsMayBeSymbols) {
  for (const std::string keys : {"h", "1"}) {
    SCOPED_TRACE(keys);
    Fused f = of_heads("h", keys);
    expect_same(f);
  }
  Fused f = of_heads("2h", "h");
  EXPECT_THAT(whole(f), ElementsAre(Pair("y_node", "its heads are not constant")));
}

TEST(ExpandAttention, NodesHaveTheNamesOfTheirModules) {
  Fused f = two_layers();
  expect_same(f, 2);
  Model model = f.model();
  expand_fused(model);
  const std::string self = "/encoder/layer.1/attention/self";
  EXPECT_THAT(names_of(model),
              IsSupersetOf({self + "/query/MatMul", self + "/query/Add", self + "/key/MatMul",
                            self + "/value/MatMul", self + "/MatMul", self + "/Softmax",
                            self + "/MatMul_1"}));
}

TEST(ExpandAttention, AMaskIsMadeOnce) {
  Model model = two_layers().model();
  expand_fused(model);
  const auto ops = ops_of(model);
  for (const char* op : {"Where", "Less", "Range", "Shape"})
    EXPECT_EQ(std::count(ops.begin(), ops.end(), op), 1) << op;
}

TEST(ExpandAttention, WeightsAreDividedOnceAndTheirSourceGoes) {
  Fused f(1);
  f.input("x", {2, 5, 6});
  f.weight("w", {6, 18});
  f.weight("b", {18});
  f.node("Attention", {"x", "w", "b"}, "y").set("num_heads", 2);
  f.node("Attention", {"y", "w", "b"}, "z").set("num_heads", 2);
  f.node("Add", {"b", "b"}, "twice", "");
  f.builder().output("z");
  f.builder().output("twice");
  expect_same(f, 2);
  Model model = f.model();
  const auto bytes = model.weight_bytes();
  expand_fused(model);
  EXPECT_EQ(model.initializer("w"), nullptr);
  EXPECT_NE(model.initializer("b"), nullptr) << "another node reads it";
  EXPECT_LT(model.weight_bytes(), bytes + 18 * 4 + 200);
}

TEST(ExpandAttention, WhatStaysWholeHasAReason) {
  const auto heads = [](Fused& f, const std::vector<std::string>& operands) -> GraphBuilder& {
    auto& g = f.node("MultiHeadAttention", operands, "y");
    g.set("num_heads", 2);
    g.output("y");
    return g;
  };
  {
    Fused f(1);
    f.input("x", {2, 5, 6});
    f.input("w", {6, 18});
    f.node("Attention", {"x", "w"}, "y").set("num_heads", 2).output("y");
    EXPECT_THAT(whole(f), ElementsAre(Pair("y_node", "operand 'w' is not constant")));
  }
  {
    Fused f(1);
    for (const char* name : {"q", "k", "v"}) f.input(name, {2, 3, 8});
    for (const char* name : {"past_k", "past_v"}) f.input(name, {2, 2, 4, 4});
    heads(f, {"q", "k", "v", "", "", "", "past_k", "past_v"});
    EXPECT_THAT(whole(f), ElementsAre(Pair("y_node", HasSubstr("past keys"))));
  }
  {
    Fused f(1);
    f.input("q", {2, 3, 8});
    for (const char* name : {"k", "v"}) f.input(name, {2, 2, 5, 4});
    heads(f, {"q", "k", "v"});
    EXPECT_THAT(whole(f), ElementsAre(Pair("y_node", HasSubstr("split into heads"))));
  }
  {
    Fused f(1);
    for (const char* name : {"q", "k", "v"}) f.input(name, {2, 3, 8});
    auto& g = heads(f, {"q", "k", "v"});
    f.add_result("present_key");
    g.output("present_key");
    EXPECT_THAT(whole(f), ElementsAre(Pair("y_node", HasSubstr("results"))));
  }
  {
    Fused f(1, 23);
    for (const char* name : {"q", "k", "v"}) f.input(name, {2, 2, 3, 4});
    f.node("Attention", {"q", "k", "v"}, "y", "").set("softcap", 2.0f).output("y");
    EXPECT_THAT(whole(f), ElementsAre(Pair("y_node", "it has attribute 'softcap'")));
  }
}

TEST(ExpandAttention, OtherModelsStayAsTheyAre) {
  Fused f(1);
  f.input("x", {3, 4});
  f.node("MatMul", {"x", f.weight("w", {4, 4})}, "y", "").output("y");
  EXPECT_THAT(whole(f), IsEmpty());
}

// Of one mask, self-attention and attention to one key need different terms.
TEST(ExpandAttention, AMaskIsSharedByNodesOfTheSameRowsAndKeysAlone) {
  for (const std::int64_t keys : {1, 5}) {
    Fused f(7);
    f.input("x", {2, 7, 6});
    f.input("m", {2, keys, 6});
    f.mask<std::int32_t>("lengths", {2}, {1, 4}, onnx::TensorProto::INT32);
    for (const std::string other : {"m", "x"}) {
      f.node("MultiHeadAttention", {"x", other, other, "", "lengths"}, "y" + other)
          .set("num_heads", 2);
      f.builder().output("y" + other);
    }
    expect_same(f, 2);
  }
}

TEST(ExpandAttention, ASymbolMayBeCalledPlaces) {
  Fused f(8);
  f.input("x", {2, 5, 6}, {"", "places", ""});
  f.mask<std::int32_t>("lengths", {2}, {1, 4}, onnx::TensorProto::INT32);
  f.node("Attention", {"x", f.weight("w", {6, 18}), "", "lengths"}, "y").set("num_heads", 2);
  f.builder().set("unidirectional", 1);
  f.builder().output("y");
  expect_same(f);
}

TEST(ExpandAttention, ABiasOfAnotherWidthStaysWhole) {
  for (const std::int64_t width : {1, 17, 19}) {
    Fused f(9);
    f.input("x", {2, 5, 6});
    f.node("Attention", {"x", f.weight("w", {6, 18}), f.weight("b", {width})}, "y")
        .set("num_heads", 2);
    f.builder().output("y");
    try {
      EXPECT_THAT(whole(f), ElementsAre(Pair(testing::_, HasSubstr("bias 'b' does not have one"))));
    } catch (const Error& e) {
      EXPECT_NE(width, 1) << e.what();  // which the importer broadcasts
    }
  }
}

TEST(ExpandAttention, AMaskOfUnknownTypeStaysWhole) {
  Fused f(10);
  f.input("x", {2, 5, 6});
  f.mask<std::int32_t>("lengths", {2}, {1, 4}, onnx::TensorProto::INT32);
  auto* function = f.builder().model().add_functions();
  function->set_name("Same");
  function->set_domain("own");
  function->add_input("a");
  function->add_output("a");  // the operand itself, which has a name already
  auto* import = function->add_opset_import();
  import->set_domain("");
  import->set_version(17);
  auto* own = f.builder().model().add_opset_import();
  own->set_domain("own");
  own->set_version(1);
  f.node("Same", {"lengths"}, "made", "own");
  f.node("Attention", {"x", f.weight("w", {6, 18}), "", "made"}, "y").set("num_heads", 2);
  f.builder().output("y");
  EXPECT_THAT(whole(f), ElementsAre(Pair(testing::_, HasSubstr("the type of operand 'made'"))));
}

}  // namespace
}  // namespace bertcl::quant::tests
