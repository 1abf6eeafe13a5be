// SPDX-License-Identifier: Apache-2.0
// What a graph computes by the plain definitions of its operators, and how far others may be off.
#include "tests/random_graphs/reference.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "ops/interpret.hpp"

namespace bertcl::tests {

Tensors random_inputs(const ir::Graph& graph, unsigned seed) {
  std::mt19937 random(seed);
  const auto from = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  const int batch = from(1, 3), seq = from(1, 5), prefix = from(0, 2);
  const bool padded = std::none_of(graph.nodes().begin(), graph.nodes().end(),
                                   [](const auto& n) { return n->op == "DynamicQuantizeLinear"; });
  Tensors inputs;
  for (const ir::Value* input : graph.inputs()) {
    const ir::Sizes sizes = ir::evaluate(input->type.shape, {{"batch", batch}, {"seq", seq}});
    std::vector<double> values;
    for (std::int64_t i = 0, real = 0; i < ir::element_count(sizes); ++i) {
      if (i % seq == 0) real = from(1, seq);
      const bool key = !padded      ? true
                       : prefix > 0 ? i % seq < real
                                    : i % seq == real - 1 || from(0, 1) == 1;
      values.push_back(ir::is_float(input->type.dtype)   ? from(-1000, 1000) / 500.0
                       : input->name == "attention_mask" ? key
                                                         : from(0, 10));
    }
    inputs[input->name] = ir::Tensor::of(sizes, std::move(values)).converted(input->type.dtype);
  }
  return inputs;
}

Reference::Reference(const ir::Graph& graph, const Tensors& inputs) {
  outputs = ops::interpret(graph, inputs);
  for (const ir::Tensor& output : outputs) {
    double largest = 0;
    for (const double v : output.to_doubles()) largest = std::max(largest, std::abs(v));
    allowed.push_back(ir::is_float(output.dtype())  ? 2e-5 * std::max(1.0, largest)
                      : ir::is_int8(output.dtype()) ? 1
                                                    : 0);
  }
  for (const double change : {2e-6, -3e-6}) {
    Tensors moved = inputs;
    for (auto& [name, tensor] : moved) {
      if (!ir::is_float(tensor.dtype())) continue;
      std::vector<double> values = tensor.to_doubles();
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] += change * (static_cast<double>(i % 3) - 1.0);
      tensor = ir::Tensor::of(tensor.shape(), std::move(values)).converted(tensor.dtype());
    }
    const auto others = ops::interpret(graph, moved);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto a = outputs[i].to_doubles(), b = others[i].to_doubles();
      for (std::size_t j = 0; j < a.size(); ++j)
        allowed[i] = std::max(allowed[i], 40 * std::abs(a[j] - b[j]));
    }
  }
}

std::string Reference::difference(const ir::Graph& graph, const Tensors& found,
                                  const ir::Tensor* mask) const {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = graph.outputs()[i].name;
    const ir::Tensor& got = found.at(name);
    if (got.shape() != outputs[i].shape() || got.dtype() != outputs[i].dtype())
      return fmt::format("{}: {}[{}] instead of {}[{}]", name, ir::name_of(got.dtype()),
                         fmt::join(got.shape(), ", "), ir::name_of(outputs[i].dtype()),
                         fmt::join(outputs[i].shape(), ", "));
    const auto a = got.to_doubles(), b = outputs[i].to_doubles();
    const ir::Shape& shape = graph.outputs()[i].value->type.shape;
    const ir::Shape& tokens = graph.find_value("attention_mask")->type.shape;
    const bool has_tokens = ir::Dim::divide(element_count(shape), tokens[1]).has_value();
    const bool by_token =
        shape.size() >= 2 && std::equal(tokens.begin(), tokens.end(), shape.begin()) &&
        !ir::Dim::divide(element_count(ir::Shape(shape.begin() + 2, shape.end())), tokens[1]);
    if (mask && has_tokens && !by_token) continue;
    for (std::size_t j = 0; j < a.size(); ++j)
      if (!(std::abs(a[j] - b[j]) <= allowed[i]) &&
          !(mask && by_token && mask->to_ints()[j * mask->to_ints().size() / a.size()] == 0))
        return fmt::format("{}[{}], element {} of {}: {} instead of {} +- {:.2g}", name,
                           fmt::join(got.shape(), ", "), j, a.size(), a[j], b[j], allowed[i]);
  }
  return "";
}

}  // namespace bertcl::tests
