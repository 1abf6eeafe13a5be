// SPDX-License-Identifier: Apache-2.0
// A device and its driver are tried once before their results are believed.
#pragma once
#include <filesystem>

#include "ir/graph.hpp"
#include "plan/plan.hpp"
#include "runtime/request.hpp"

namespace bertcl::runtime {

/// Runs a sequence of a few tokens through `request` of `plan`, and compares its float outputs with
/// those of ops::interpret() for `graph`, the compiled form of the model at `path`. Throws Error
/// (ErrorCode::device) where a value is not finite, or an output differs by more than a tenth of
/// its root mean square. Returns false where
/// nothing was compared: the model reads no token ids, cannot be interpreted, or has no float
/// output that is finite.
bool check_results(const ir::Graph& graph, const plan::Plan& plan, Request& request,
                   const std::filesystem::path& path);

/// Where the check of this device, its driver and the programs of `plan` is remembered, in the
/// program cache; empty without one, and with BERTCL_SELF_CHECK=off.
std::filesystem::path self_check_file(const plan::Plan& plan);
/// Writes the file. Where that fails, the next load checks again.
void remember_check(const std::filesystem::path& file);

}  // namespace bertcl::runtime
