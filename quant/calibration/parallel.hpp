// SPDX-License-Identifier: Apache-2.0
// Runs independent host work on all cores.
#pragma once
#include <cstddef>
#include <functional>

namespace bertcl::quant {

/// Calls work(0) to work(count - 1), each once, from as many threads as there are cores. An
/// exception ends the work; the first is thrown when all threads have stopped.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace bertcl::quant
