// SPDX-License-Identifier: Apache-2.0
// A question-answering head splits its two logits while it puts the padding back.
//
//   packed -> unpack -> Split -> start, end    becomes    packed -> unpack -> start, end
//
// One launch instead of three.
#include "ir/dtype.hpp"
#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

bool fuse_unpack_split_at(ir::Graph& g, ir::Node& split) {
  if (split.op != "Split" || split.outputs.size() != 2) return false;
  ir::Value* padded = split.inputs[0];
  ir::Node* unpack = padded->producer;
  const ir::Shape& shape = padded->type.shape;
  if (!unpack || unpack->op != unpack::op || unpack->outputs.size() != 1 || !g.used_once(padded) ||
      shape.size() != 3 || !ops::is_last_axis(split, 0, shape))
    return false;
  if (ir::size_of(padded->type.dtype) % 4 != 0) return false;  // the kernel copies words
  ir::Node* made = g.add_node(unpack::op, unpack->inputs, unpack->attributes,
                              {{split.outputs[0]->name, split.outputs[0]->type},
                               {split.outputs[1]->name, split.outputs[1]->type}},
                              &split);
  made->sources = sources_of({unpack, &split});
  for (std::size_t i = 0; i < 2; ++i) replace_uses_and_name(g, split.outputs[i], made->outputs[i]);
  return true;
}

}  // namespace

Pass fuse_unpack_split() { return rewriting("fuse_unpack_split", fuse_unpack_split_at); }

}  // namespace bertcl::passes
