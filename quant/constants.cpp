// SPDX-License-Identifier: Apache-2.0
// Which tensors of an ONNX graph are constants, and their values.
#include "quant/constants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "bertcl/error.hpp"
#include "ops/support.hpp"

namespace bertcl::quant {

bool Constants::contains(const std::string& tensor) {
  if (model_.initializer(tensor)) return true;
  const int producer = index_.producer(tensor);
  if (producer < 0) return false;
  if (const auto it = known_.find(tensor); it != known_.end()) return it->second;
  known_[tensor] = false;  // until it is known: a graph that is wrong may hold a cycle
  const auto& node = index_.node(producer);
  bool constant = is_op(node, "Constant") || node.input_size() > 0;
  for (const auto& input : node.input())
    if (!input.empty() && constant) constant = contains(input);
  // Random numbers and branches are no constants whatever they read.
  for (const auto& a : node.attribute()) constant = constant && !a.has_g() && a.graphs().empty();
  constant = constant && !node.op_type().starts_with("Random") && !is_op(node, "Multinomial");
  return known_[tensor] = constant;
}

void Constants::collect(const std::string& tensor, std::set<int>& nodes,
                        std::set<std::string>& initializers) const {
  if (model_.initializer(tensor)) initializers.insert(tensor);
  const int producer = index_.producer(tensor);
  if (producer < 0 || !nodes.insert(producer).second) return;
  for (const auto& input : index_.node(producer).input()) collect(input, nodes, initializers);
}

ir::Tensor transposed(const ir::Tensor& from, std::vector<std::int64_t> perm) {
  const std::size_t rank = from.shape().size();
  if (perm.empty()) {
    perm.resize(rank);
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  if (perm.size() != rank) throw Error("Transpose has a perm of another rank than its input");
  const ir::Sizes strides = ops::dense_strides(from.shape());
  ir::Sizes sizes(rank), steps(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const auto axis = static_cast<std::size_t>(perm[i]);
    if (axis >= rank) throw Error("Transpose has an axis outside its input");
    sizes[i] = from.shape()[axis];
    steps[i] = strides[axis];
  }
  return ops::gather_strided(from, sizes, steps);
}

namespace {

std::vector<std::int64_t> ints(const onnx::AttributeProto* attribute) {
  if (!attribute) return {};
  return {attribute->ints().begin(), attribute->ints().end()};
}

/// Sizes of Reshape's result: 0 copies, -1 takes what is left.
ir::Sizes reshaped_sizes(const ir::Tensor& from, std::vector<std::int64_t> wanted) {
  std::int64_t known = 1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == 0 && i < from.shape().size()) wanted[i] = from.shape()[i];
    if (wanted[i] > 0) known *= wanted[i];
  }
  for (auto& size : wanted)
    if (size == -1) size = from.size() / std::max<std::int64_t>(known, 1);
  if (ir::element_count(wanted) != from.size())
    throw Error("Reshape changes the number of elements");
  return wanted;
}

ir::Sizes without_ones(const ir::Sizes& shape, const std::vector<std::int64_t>& axes) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  ir::Sizes sizes;
  for (std::int64_t i = 0; i < rank; ++i) {
    const bool named = std::any_of(axes.begin(), axes.end(),
                                   [&](std::int64_t a) { return (a < 0 ? a + rank : a) == i; });
    const auto size = shape[static_cast<std::size_t>(i)];
    if (axes.empty() ? size != 1 : !named) sizes.push_back(size);
  }
  return sizes;
}

ir::Sizes with_ones(const ir::Sizes& shape, const std::vector<std::int64_t>& axes) {
  const auto rank = static_cast<std::int64_t>(shape.size() + axes.size());
  ir::Sizes sizes(static_cast<std::size_t>(rank), 0);
  for (const auto a : axes) {
    const auto axis = a < 0 ? a + rank : a;
    if (axis < 0 || axis >= rank || sizes[static_cast<std::size_t>(axis)] != 0)
      throw Error(fmt::format("Unsqueeze has axis {} twice, or outside its result", a));
    sizes[static_cast<std::size_t>(axis)] = 1;
  }
  auto next = shape.begin();
  for (auto& size : sizes)
    if (size == 0) size = *next++;
  return sizes;
}

}  // namespace

ir::Tensor Constants::value(const std::string& tensor) {
  if (model_.initializer(tensor)) return model_.read(tensor);
  const int producer = index_.producer(tensor);
  if (producer < 0) throw Error(fmt::format("tensor '{}' is no constant", tensor));
  const auto& node = index_.node(producer);
  try {
    return evaluate(node);
  } catch (const Error& e) {
    throw Error(fmt::format("node '{}': {}", label_of(node), e.what()));
  }
}

ir::Tensor Constants::evaluate(const onnx::NodeProto& node) {
  if (is_op(node, "Constant")) {
    const auto* a = find_attribute(node, "value");
    if (a) return model_.read(a->t());
    if ((a = find_attribute(node, "value_ints"))) {
      const auto values = ints(a);
      return ir::Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
    }
    if ((a = find_attribute(node, "value_float"))) return ir::Tensor::scalar<float>(a->f());
    throw Error("this form of Constant cannot be evaluated");
  }
  const auto first = [&] { return value(node.input(0)); };
  const auto floats = [&] {
    const auto t = first();
    return ir::is_float(t.dtype()) ? t.converted(ir::DType::f32) : t;
  };
  // axes and shape: an attribute in old operator sets, an input in new ones
  const auto list = [&](const char* attribute) {
    return node.input_size() > 1 ? value(node.input(1)).to_ints()
                                 : ints(find_attribute(node, attribute));
  };
  if (is_op(node, "Identity")) return first();
  if (is_op(node, "Cast"))
    return first().converted(onnx_io::element_type(
        static_cast<std::int32_t>(int_attribute(node, "to", 0)), "attribute 'to'"));
  if (is_op(node, "Transpose")) return transposed(first(), ints(find_attribute(node, "perm")));
  if (is_op(node, "Reshape")) {
    const auto t = first();
    return t.reshaped(reshaped_sizes(t, list("shape")));
  }
  if (is_op(node, "Squeeze")) {
    const auto t = first();
    return t.reshaped(without_ones(t.shape(), list("axes")));
  }
  if (is_op(node, "Unsqueeze")) {
    const auto t = first();
    return t.reshaped(with_ones(t.shape(), list("axes")));
  }
  if (is_op(node, "Mul") || is_op(node, "Div")) {
    const auto x = floats();
    const auto by = value(node.input(1)).converted(ir::DType::f32);
    if (by.size() == 1 && by.shape().size() <= x.shape().size() && x.dtype() == ir::DType::f32) {
      const float factor = by.as<float>()[0];
      std::vector<float> values(x.as<float>().begin(), x.as<float>().end());
      for (float& v : values) v = is_op(node, "Mul") ? v * factor : v / factor;
      return ir::Tensor::of<float>(x.shape(), std::move(values));
    }
  }
  throw Error(
      fmt::format("operator {} in front of a weight cannot be evaluated; fold the constants "
                  "of the model first",
                  node.op_type()));
}

}  // namespace bertcl::quant
