// SPDX-License-Identifier: Apache-2.0
// Operators that rearrange elements.
#include <algorithm>
#include <limits>

#include "onnx/importer.hpp"
#include "onnx/shift.hpp"
#include "support/ceil_div.hpp"

namespace bertcl::onnx_io {
namespace {

void import_transpose(NodeImport& node) {
  auto perm = node.ints_attribute("perm");
  if (!perm) {
    perm.emplace();
    for (std::size_t d = node.shape(0).size(); d-- > 0;)
      perm->push_back(static_cast<std::int64_t>(d));
  }
  node.emit_outputs("Transpose", {node.input(0)}, {{"perm", *perm}});
}

void import_concat(NodeImport& node) {
  if (!node.attribute("axis")) node.fail("attribute 'axis' is missing");
  const auto axis = static_cast<std::size_t>(node.axis(0));
  std::vector<ir::Value*> parts = node.inputs();
  const ir::Value* first = parts.front();
  std::erase_if(parts, [&](const ir::Value* part) {  // nothing, as past keys and values are
    return part != nullptr && part->type.dtype == first->type.dtype &&
           part->type.shape.size() == first->type.shape.size() &&
           part->type.shape[axis] == ir::Dim(0);
  });
  if (parts.empty()) parts.push_back(node.input(0));
  node.emit_outputs("Concat", std::move(parts), {{"axis", static_cast<std::int64_t>(axis)}});
}

/// The extents of the parts are always written out.
void import_split(NodeImport& node) {
  const std::int64_t axis = node.axis(0);
  auto extents = node.ints_attribute("split");
  if (!extents) extents = node.constant_ints(1);
  if (!extents) {
    const auto parts = static_cast<std::int64_t>(node.proto().output_size());
    const ir::Dim extent = node.shape(0)[axis];
    if (!extent.is_constant() || parts == 0)
      node.fail("axis {} of size {} cannot be split into {} equal parts", axis, extent.str(),
                parts);
    // Opset 18: the last part is smaller where it does not divide.
    const std::int64_t size = ceil_div(extent.constant(), parts);
    extents.emplace();
    for (std::int64_t i = 0; i < parts; ++i)
      extents->push_back(std::clamp<std::int64_t>(extent.constant() - i * size, 0, size));
  }
  if (extents->size() != static_cast<std::size_t>(node.proto().output_size()))
    node.fail("{} extents for {} outputs", extents->size(), node.proto().output_size());
  node.emit_all_outputs("Split", {node.input(0)}, {{"axis", axis}, {"split", *extents}});
}

/// Starts, ends, axes and steps are operands; before opset 10 they were attributes.
void import_slice(NodeImport& node) {
  if (!node.attribute("starts")) return import_same(node);
  const auto operand = [&](const char* name) -> ir::Value* {
    const auto ints = node.ints_attribute(name);
    if (!ints) return nullptr;
    return node.constant(
        ir::Tensor::of<std::int64_t>({static_cast<std::int64_t>(ints->size())}, *ints), name);
  };
  std::vector<ir::Value*> inputs{node.input(0), operand("starts"), operand("ends"),
                                 operand("axes")};
  if (!inputs[2]) node.fail("attribute 'ends' is missing");
  if (!inputs.back()) inputs.pop_back();
  node.emit_outputs("Slice", std::move(inputs));
}

/// If `x` is a Slice that omits the first or the last element of an axis whose length a run tells,
/// and one pad at the other end restores the length: its operand, with a pad of -1 for the Slice.
/// Otherwise `x`.
ir::Value* unsliced(NodeImport& node, ir::Value* x, std::vector<std::int64_t>& pads) {
  const ir::Node* slice = x->producer;
  if (!slice || slice->op != "Slice" || slice->inputs.size() < 3) return x;
  const auto ints = [&](std::size_t i) {
    return slice->input(i) ? node.importer().values().constants(slice->input(i)) : std::nullopt;
  };
  const auto starts = ints(1), ends = ints(2), axes = ints(3), steps = ints(4);
  if (!starts || !ends || starts->size() != 1 || ends->size() != 1) return x;
  if ((slice->input(3) && !axes) || (slice->input(4) && steps != std::vector<std::int64_t>{1}))
    return x;
  const std::size_t rank = x->type.shape.size();
  const std::int64_t given = axes ? axes->front() : 0;
  const auto axis =
      static_cast<std::size_t>(given < 0 ? given + static_cast<std::int64_t>(rank) : given);
  ir::Value* whole = slice->inputs[0];
  if (whole->type.shape[axis].is_constant()) return x;
  constexpr std::int64_t all = std::numeric_limits<std::int32_t>::max();
  const bool first =
      starts->front() == 1 && ends->front() >= all && pads[axis] == 0 && pads[rank + axis] == 1;
  const bool last =
      starts->front() == 0 && ends->front() == -1 && pads[axis] == 1 && pads[rank + axis] == 0;
  if (!first && !last) return x;
  --pads[first ? axis : rank + axis];
  return whole;
}

void import_pad(NodeImport& node) {
  if (node.string_attribute("mode", "constant") != "constant")
    node.fail("mode '{}' is not supported (supported: 'constant')",
              node.string_attribute("mode", ""));
  auto pads = node.ints_attribute("pads");
  if (!pads) pads = node.constant_ints(1);
  if (!pads) node.fail("the pads are missing");
  const std::size_t rank = node.shape(0).size();
  if (const auto axes = node.constant_ints(3)) {
    if (pads->size() != 2 * axes->size())
      node.fail("{} pads for {} axes, expected two for each", pads->size(), axes->size());
    std::vector<std::int64_t> all(2 * rank, 0);
    for (std::size_t i = 0; i < axes->size(); ++i) {
      const auto axis = static_cast<std::size_t>(node.axis_within((*axes)[i], rank));
      all[axis] = (*pads)[i];
      all[rank + axis] = (*pads)[axes->size() + i];
    }
    pads = all;
  }
  if (pads->size() != 2 * rank) node.fail("{} pads for a tensor of rank {}", pads->size(), rank);
  ir::Value* x = unsliced(node, node.input(0), *pads);
  ir::Value* fill = node.attribute("value")
                        ? node.scalar(node.float_attribute("value", 0), x->type.dtype)
                        : node.optional_input(2);
  for (std::size_t axis = 1; axis < rank; ++axis) {  // packed texts have no neighbours in a batch
    std::int64_t &before = (*pads)[axis], &after = (*pads)[rank + axis];
    if (x->type.shape[axis].is_constant() || before == 0 || before != -after) continue;
    x = emit_shift(node, x, axis, -before, fill ? fill : node.scalar(0, x->type.dtype));
    before = after = 0;
  }
  std::vector<ir::Value*> inputs{x};
  if (fill) inputs.push_back(fill);
  node.emit_outputs("Pad", std::move(inputs), {{"pads", *pads}});
}

}  // namespace

Rules layout_rules() {
  return {
      {"Transpose", {import_transpose, {"perm"}}},
      {"Concat", {import_concat, {"axis"}}},
      {"Split", {import_split, {"axis", "split", "num_outputs"}}},
      {"Slice", {import_slice, {"starts", "ends", "axes"}}},
      {"Pad", {import_pad, {"mode", "pads", "value"}}},
      {"Tile", {import_same, {}}},
  };
}

}  // namespace bertcl::onnx_io
