// SPDX-License-Identifier: Apache-2.0
// A device and its driver are tried once before their results are believed.
#pragma once
#include <filesystem>
#include <optional>

#include "ir/graph.hpp"
#include "ir/tensor.hpp"
#include "plan/plan.hpp"
#include "runtime/request.hpp"

namespace bertcl::runtime {

/// Runs a sequence of a few tokens through `request` of `plan`, and compares its float outputs with
/// those of ops::interpret() for `graph`, the compiled form of the model at `path`. Where they
/// differ, it tries others: a rounding tie that later int8 layers amplify is not in each. Throws
/// Error (ErrorCode::device) where a value is not finite, or in each of four sequences an output
/// differs by more than a tenth of its root mean square. Returns false where nothing was compared:
/// the model reads no token ids, cannot be interpreted, or has no float output that is finite.
bool check_results(const ir::Graph& graph, const plan::Plan& plan, Request& request,
                   const std::filesystem::path& path);

/// False where a check of this device, its driver and the programs of `plan` with their options is
/// remembered, and with BERTCL_SELF_CHECK=off.
bool needs_check(const plan::Plan& plan);
/// Remembers it in a file of the program cache, where one can be written; else in this process.
void remember_check(const plan::Plan& plan);

/// Root mean square of the differences of elements, divided by that of the expected values or by
/// 1e-6, whichever is larger: so much rounding leaves of sums that should be zero. Empty if an
/// expected value is not finite.
std::optional<double> relative_difference(const ir::Tensor& found, const ir::Tensor& expected);

}  // namespace bertcl::runtime
