// SPDX-License-Identifier: Apache-2.0
// The check of every node against the definition of its operator.
#include "ops/verify.hpp"

#include <fmt/format.h>

#include "bertcl/error.hpp"
#include "ops/op.hpp"
#include "ops/type_constraints.hpp"

namespace bertcl::ops {
namespace {

void check_operands(const ir::Node& node, const OpDef& def) {
  if (node.inputs.size() > def.max_inputs)
    throw Error(fmt::format("{}: got {} operands, expected at most {}", node.describe(),
                            node.inputs.size(), def.max_inputs));
  for (std::size_t i = 0; i < def.min_inputs; ++i)
    if (!node.input(i)) throw Error(fmt::format("{}: operand {} is missing", node.describe(), i));
  for (std::size_t i = 0; i < def.operands.size(); ++i)
    if (!def.operands[i].ends_with('?') && !node.input(i))
      throw Error(fmt::format("{}: operand '{}' is missing", node.describe(), def.operands[i]));
  check_operand_types(node, def.types);
}

void check_results(ir::Graph& graph, const ir::Node& node, const OpDef& def) {
  SymbolicValues no_values;
  InferContext context{{node}, graph, no_values};
  const std::vector<ir::Type> types = def.infer(context);
  if (node.outputs.size() > types.size())
    context.fail("{} results, expected at most {}", node.outputs.size(), types.size());
  for (std::size_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i]->type != types[i])
      context.fail("result '{}' is declared {}, but the operands give {}", node.outputs[i]->name,
                   ir::str(node.outputs[i]->type), ir::str(types[i]));
}

}  // namespace

void verify(ir::Graph& graph, std::string_view where) {
  for (const auto& node : graph.nodes()) try {
      const OpDef& def = get(*node);
      check_operands(*node, def);
      if (def.is_own) check_results(graph, *node, def);
    } catch (const Error& error) {
      throw Error(fmt::format("invalid graph after {}: {}", where, error.what()));
    }
}

}  // namespace bertcl::ops
