// SPDX-License-Identifier: Apache-2.0
// A graph on the device against the host interpreter of the same graph.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "ops/interpret.hpp"
#include "runtime/session.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::runtime {

/// The first difference beyond the tolerance; "" if there is none. Floats: a share of the largest
/// value; bytes: `steps`; other integers exactly.
inline std::string difference(const ir::Tensor& got, const ir::Tensor& expected, int steps) {
  if (got.shape() != expected.shape() || got.dtype() != expected.dtype())
    return fmt::format("{} of {} elements instead of {} of {}", ir::name_of(got.dtype()),
                       got.size(), ir::name_of(expected.dtype()), expected.size());
  const auto a = got.to_doubles(), b = expected.to_doubles();
  double largest = 0, magnitude = 0;
  std::size_t first = a.size();
  for (const double v : b) magnitude = std::max(magnitude, std::abs(v));
  const double allowed = ir::is_float(got.dtype())  ? 1e-5 * magnitude
                         : ir::is_int8(got.dtype()) ? steps
                                                    : 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
    if (!(std::abs(a[i] - b[i]) <= allowed)) first = std::min(first, i);
  }
  if (first == a.size()) return "";
  return fmt::format("element {} of {} is {} instead of {}; largest difference {}", first, a.size(),
                     a[first], b[first], largest);
}

/// Random inputs for a graph whose symbols all have the size `size`.
inline Tensors inputs_for(const ir::Graph& graph, std::int64_t size, unsigned seed) {
  std::mt19937 random(seed);
  Tensors inputs;
  for (const ir::Value* in : graph.inputs()) {
    ir::Sizes sizes;
    for (const ir::Dim& d : in->type.shape)
      sizes.push_back(d.symbols().empty() ? d.constant() : size);
    const auto count = static_cast<std::size_t>(ir::element_count(sizes));
    if (ir::is_float(in->type.dtype)) {
      std::normal_distribution<float> normal(0.3f, 2.0f);
      std::vector<float> values(count);
      for (float& v : values) v = normal(random);
      inputs[in->name] = ir::Tensor::of(sizes, std::move(values));
    } else {
      const bool is_unsigned = in->type.dtype == ir::DType::u8;
      std::uniform_int_distribution<std::int64_t> any(is_unsigned ? 0 : -128,
                                                      is_unsigned ? 255 : 127);
      std::vector<std::int64_t> values(count);
      for (auto& v : values) v = any(random);
      inputs[in->name] = ir::Tensor::of(sizes, std::move(values)).converted(in->type.dtype);
    }
  }
  return inputs;
}

/// Compiled in full, and with the passes that fuse left out, each against the interpreter.
inline void expect_as_interpreted(const std::string& text, int steps = 0) {
  for (const std::int64_t size : {1, 2, 7, 33})
    for (const bool fused : {true, false}) {
      const ir::Graph graph = ir::parse(text);
      const Tensors inputs = inputs_for(graph, size, static_cast<unsigned>(size));
      const auto expected = ops::interpret(graph, inputs);
      SessionOptions options;
      if (!fused) options.disabled_passes = {"find_linear_q", "find_linear"};
      Session session = Session::compile(ir::parse(text), options);
      const Tensors outputs = session.run(inputs);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const std::string& name = graph.outputs()[i].name;
        EXPECT_EQ(difference(outputs.at(name), expected[i], steps), "")
            << name << ", size " << size << (fused ? ", fused\n" : ", not fused\n") << text;
      }
    }
}

}  // namespace bertcl::runtime
