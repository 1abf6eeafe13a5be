// SPDX-License-Identifier: Apache-2.0
// Ends long work on SIGHUP, SIGINT and SIGTERM and removes its temporary files.
#pragma once
#include <functional>

namespace bertcl::tools {

/// Runs `work`; a signal shows in throw_if_interrupted(), which unwinds it, and then ends the
/// program as it would have at once. A second signal does not wait.
int run_interruptibly(const std::function<int()>& work);

/// Call it regularly from such work.
void throw_if_interrupted();

}  // namespace bertcl::tools
