// SPDX-License-Identifier: Apache-2.0
// Sequences without padding as what a plan takes, and outputs without padding.
#pragma once
#include <cstdint>
#include <span>

#include "ir/port.hpp"
#include "ops/packing.hpp"
#include "plan/plan.hpp"
#include "runtime/inputs.hpp"
#include "runtime/session.hpp"

namespace bertcl::runtime {

/// Throws Error if the offsets do not ascend from 0 to the number of ids, a sequence is empty, or
/// the token types are not as many as the ids.
void check(const Sequences& sequences);
/// The same for offsets alone, of that many tokens.
void check_sequence_offsets(std::span<const std::int64_t> offsets, std::int64_t tokens);

/// The model's input of token ids [batch, seq]; null: it has none.
const ir::Port* find_ids(const plan::Plan& plan);
/// The same; throws Error where it has none.
const ir::Port& ids_of(const plan::Plan& plan);

/// Tokens of the longest sequence, by the positions and by the ids where the file fixes their
/// number; 0: no limit is known.
std::int64_t longest_sequence(const plan::Plan& plan);

/// True if rows of padding change nothing in those of tokens: the model has a mask, and where it
/// reads ids to find padding, that of the plan is one of those that it looks for.
bool ignores_padding(const plan::Plan& plan);

/// True where a plan computes on packed tokens, and every input of the model is one of them or says
/// how they are packed: token ids, token types, positions, a mask. Others take padded tensors.
bool takes_packed(const plan::Plan& plan);

/// Rows of the sequences in a plan that takes them packed, and the extents that its inputs would
/// have with padding. Throws Error where they do not suit the model.
struct PackedShape {
  ops::Packing packing;
  Shapes inputs;
};
PackedShape packed_shape(const plan::Plan& plan, std::span<const std::int64_t> offsets);

/// Throws Error if a sequence cannot be padded to `seq` tokens, since padding would change what the
/// model gives for it. A model that compares its ids with another token than a known padding id is
/// taken to look for that token, as CLIP's does for the end of the text.
void check_can_pad(const plan::Plan& plan, std::int64_t seq);

/// The adapter for all other plans: ids, mask, token types and positions [batch, longest]. Throws
/// Error for an input of another meaning, and where padding cannot be told from tokens.
Tensors padded(const plan::Plan& plan, const Sequences& sequences);

/// True for an output [batch, seq, ...] of a model of token ids; not for [batch, 384] where
/// ids are [batch, 384] and the second axis is another.
bool has_padding(const plan::Plan& plan, std::size_t output);

/// [batch, seq, ...] as [tokens, ...].
ir::Tensor without_padding(const ir::Tensor& padded, std::span<const std::int32_t> seq_offsets);

}  // namespace bertcl::runtime
