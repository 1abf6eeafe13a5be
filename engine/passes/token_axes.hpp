// SPDX-License-Identifier: Apache-2.0
// Where tokens lie in a tensor, and what operators make of that.
//
//   x [batch, seq, hidden]          element e is of token e / hidden % seq
//   Reshape -> [batch * seq, hidden]      the same
//   Reshape -> [batch, seq * hidden]      the same, in an axis with other elements
//   Transpose -> [batch, hidden, seq]     element e is of token e % seq
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace bertcl::passes {

/// What rows of padding hold, as far as it is known.
struct Padding {
  bool fixed = false;  ///< the same whatever they held before
  bool zero = false;   ///< zeros, which are fixed
  bool low = false;    ///< numbers that stand for minus infinity
  bool finite = true;  ///< neither infinite nor NaN, where rows of padding were zeros
};

/// Tokens in a dense tensor: element e is of token e / stride % extent.
struct TokenAxis {
  ir::Dim stride, extent;
  /// "": token i of a sequence at i; else another order, or a part of the tokens.
  std::string order{};
  Padding padding{};

  bool is_same_place(const TokenAxis& other) const {
    return stride == other.stride && extent == other.extent;
  }
};
using TokenAxes = std::vector<TokenAxis>;

/// The token axis of a tensor [batch, seq, ...]; none if seq is 1.
TokenAxes axis_of_tokens(const ir::Shape& rows);

/// The axis of sequences of a tensor [batch, ...], which is followed as one of tokens is; none if
/// batch is 1.
TokenAxes axis_of_batch(const ir::Shape& rows);

/// What becomes of the token axes of an operand.
struct FollowedAxes {
  TokenAxes result;
  /// Several tokens of these make one element of the result, or a token is taken by its number, or
  /// it cannot be told where they are.
  TokenAxes combined{};
};

/// Follows the token axes of operand `i` into a result of the node. `chooses(v)`: whether the
/// indices `v` choose real tokens alone.
FollowedAxes follow_tokens(const ir::Node& node, std::size_t i, const ir::Value& result,
                           const TokenAxes& axes,
                           const std::function<bool(const ir::Value*)>& chooses);

}  // namespace bertcl::passes
