// SPDX-License-Identifier: Apache-2.0
// Which outputs of a model are the logits of an answer's start and end.
#pragma once
#include <string>
#include <vector>

#include "ir/port.hpp"

namespace bertcl::squad {

/// Start and end [batch, seq], or one output of both [batch, seq, 2]. By their names: start_logits,
/// output_start_logits, unstack:0, ... Throws Error with all outputs if there are no such logits.
std::vector<std::string> find_logits(const std::vector<ir::Port>& outputs);

}  // namespace bertcl::squad
