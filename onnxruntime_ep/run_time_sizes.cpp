// SPDX-License-Identifier: Apache-2.0
// What the engine takes for granted of extents that only a run knows, and ONNX Runtime does not.
#include "onnxruntime_ep/run_time_sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "ir/node_error.hpp"
#include "ops/op.hpp"
#include "ops/support.hpp"

namespace bertcl::onnxruntime_ep {
namespace {

/// Nodes that stay with ONNX Runtime, and why the first of them does.
struct Refused {
  std::vector<std::string> nodes;
  std::string why;

  void add(const ir::Node& node, std::string reason) {
    nodes.insert(nodes.end(), node.sources.begin(), node.sources.end());
    if (why.empty()) why = std::move(reason);
  }
  void raise() {
    if (!nodes.empty()) throw ir::NodeError(std::move(nodes), why, ErrorCode::unsupported);
  }
};

/// The symbols of a graph's inputs. Others are sums, or equal to what an operator compares them
/// with.
class GivenSizes {
 public:
  explicit GivenSizes(const ir::Graph& graph) {
    for (const ir::Value* input : graph.inputs())
      for (const ir::Dim& extent : input->type.shape)
        symbols_.insert(extent.symbols().begin(), extent.symbols().end());
  }
  bool tell(const ir::Dim& extent) const {
    return std::ranges::all_of(
        extent.symbols(), [&](const std::string& symbol) { return symbols_.contains(symbol); });
  }

 private:
  std::set<std::string> symbols_;
};

/// Whether `size` is at most `limit` whatever the run: symbols are at least 1.
bool is_at_most(const ir::Dim& size, const ir::Dim& limit) {
  if (!size.is_constant()) return ir::Dim::divide(limit, size).has_value();
  ir::Bindings min;
  for (const std::string& symbol : limit.symbols()) min[symbol] = 1;
  return size.constant() <= limit.evaluate(min);
}

std::optional<std::vector<std::int64_t>> constants(const ir::Value* value) {
  if (!value || !value->is_constant()) return std::nullopt;
  return value->constant->to_ints();
}

/// A constant axis, as that of a table of positions, is taken for long enough.
void check_slice(const ir::Node& node, const GivenSizes& sizes, Refused& refused) {
  const auto starts = constants(node.input(1)), axes = constants(node.input(3));
  const auto steps = constants(node.input(4));
  if (!starts || (node.input(3) && !axes) || (node.input(4) && !steps)) return;  // has no kernel
  const ir::Shape &from = node.inputs[0]->type.shape, &to = node.output()->type.shape;
  for (std::size_t i = 0; i < starts->size(); ++i) {
    std::int64_t axis = axes ? axes->at(i) : static_cast<std::int64_t>(i);
    if (axis < 0) axis += std::ssize(from);
    const ir::Dim& extent = from.at(static_cast<std::size_t>(axis));
    if (extent.is_constant() || !sizes.tell(extent)) continue;
    const auto min = ops::slice_reach((*starts)[i], steps ? steps->at(i) : 1,
                                      to.at(static_cast<std::size_t>(axis)));
    if (!min || !sizes.tell(*min) || is_at_most(*min, extent)) continue;
    refused.add(node, fmt::format("the slice needs {} elements along axis {} of '{}', which may "
                                  "have fewer ({}) in a run",
                                  min->str(), axis, node.inputs[0]->name, extent.str()));
  }
}

/// Without axes: the engine removes those that are 1 in every run.
void check_squeeze(const ir::Node& node, const GivenSizes& sizes, Refused& refused) {
  for (const ir::Dim& extent : node.inputs[0]->type.shape)
    if (!extent.is_constant() && sizes.tell(extent))
      refused.add(node, fmt::format("whether {} is 1, and removed, is unknown before the run",
                                    extent.str()));
}

/// Operators that broadcast, by the extents that they compare.
class Broadcasts {
 public:
  Broadcasts(const ir::Graph& graph, const GivenSizes& sizes,
             const std::map<std::string, std::string>& unknown, Refused& refused)
      : assumptions_(graph.assumptions()), sizes_(sizes), unknown_(unknown), refused_(refused) {}

  void check(const ir::Node& node) {
    if (node.op == "Expand") check_expand(node);
    const bool multiplies =
        node.op == "MatMul" || node.op == "MatMulInteger" || node.op == "QLinearMatMul";
    if (!multiplies && node.op != "Where" && !ops::traits(node).binary_code) return;
    const std::size_t from = multiplies ? 2 : 0;  // from the right
    for (const ir::Value* a : node.inputs)
      for (const ir::Value* b : node.inputs) {
        if (!a || !b || a == b) continue;
        const ir::Shape &left = a->type.shape, &right = b->type.shape;
        for (std::size_t i = from; i < std::min(left.size(), right.size()); ++i)
          compare(node, left[left.size() - 1 - i], right[right.size() - 1 - i]);
      }
    if (node.op != "MatMulInteger") return;
    check_zero_points(node, node.inputs[0], 2, node.input(2));  // of rows
    check_zero_points(node, node.inputs[1], 1, node.input(3));  // of columns
  }

 private:
  /// Its result has the numbers of the target and, instead of other sizes of it, those of the
  /// operand that they are assumed to equal.
  void check_expand(const ir::Node& node) {
    const ir::Shape &from = node.inputs[0]->type.shape, &to = node.output()->type.shape;
    for (std::size_t i = 0; i < from.size(); ++i) {
      const ir::Dim &extent = from[i], &result = to[to.size() - from.size() + i];
      refuse_unknown(node, extent);
      compare(node, extent, result);
      if (extent != result) continue;
      for (const auto& [a, b] : assumptions_)
        if (const ir::Dim& other = a == extent ? b : a;
            (a == extent || b == extent) && !other.is_constant())
          compare(node, extent, other);
    }
  }
  /// One for all, or one for each along an axis.
  void check_zero_points(const ir::Node& node, const ir::Value* of, std::size_t axis_from_end,
                         const ir::Value* zero) {
    const ir::Shape& shape = of->type.shape;
    if (zero && zero->type.shape.size() == 1 && shape.size() >= axis_from_end)
      compare(node, shape[shape.size() - axis_from_end], zero->type.shape[0]);
  }
  void refuse_unknown(const ir::Node& node, const ir::Dim& extent) {
    for (const std::string& symbol : extent.symbols())
      if (const auto found = unknown_.find(symbol); found != unknown_.end())
        refused_.add(node, fmt::format("ONNX Runtime does not know the shape of '{}', so its "
                                       "broadcasting is unknown before the run",
                                       found->second));
  }
  void compare(const ir::Node& node, const ir::Dim& a, const ir::Dim& b) {
    if (a == b || a == ir::Dim(1) || b == ir::Dim(1)) return;
    refuse_unknown(node, a), refuse_unknown(node, b);
    if (sizes_.tell(a) && sizes_.tell(b))
      refused_.add(node, fmt::format("whether {} and {} are equal, or one of them is 1, is unknown "
                                     "before the run",
                                     a.str(), b.str()));
  }

  const std::vector<std::pair<ir::Dim, ir::Dim>>& assumptions_;
  const GivenSizes& sizes_;
  const std::map<std::string, std::string>& unknown_;
  Refused& refused_;
};

}  // namespace

void check_run_time_sizes(const ir::Graph& graph,
                          const std::map<std::string, std::string>& unknown) {
  Refused slices, squeezes, broadcasts;
  const GivenSizes sizes(graph);
  Broadcasts check(graph, sizes, unknown, broadcasts);
  for (const auto& node : graph.nodes()) {
    if (node->op == "Slice" && node->inputs.size() > 1) check_slice(*node, sizes, slices);
    if (node->op == "Squeeze" && !node->has("axes")) check_squeeze(*node, sizes, squeezes);
    check.check(*node);
  }
  slices.raise();
  squeezes.raise();
  broadcasts.raise();
}

}  // namespace bertcl::onnxruntime_ep
