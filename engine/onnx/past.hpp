// SPDX-License-Identifier: Apache-2.0
// Keys and values of earlier tokens, which decoders exported for text generation take and give.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "ir/graph.hpp"

namespace bertcl::onnx_io {

/// The axis of tokens of an input that holds keys or values of earlier tokens: it has a name as
/// `past_key_values.0.key`, `past_key_0` or `past.0.value`, holds floats [batch, heads, past, size]
/// or [2, batch, heads, past, size], and may have no tokens. None of other inputs.
std::optional<std::size_t> past_axis(const std::string& name, const ir::Type& type);

/// True for `present.0.key` and the like: the outputs that the next run would take as past.
bool is_kv_cache_output(const std::string& name);

}  // namespace bertcl::onnx_io
