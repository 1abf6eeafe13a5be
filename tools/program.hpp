// SPDX-License-Identifier: Apache-2.0
// The program `bertcl`: its commands, and from exceptions to exit codes.
#pragma once

namespace bertcl::tools {

/// Parses, runs, reports: the whole of main(). Every failure is one message on standard error that
/// begins with "bertcl: ".
int run_program(int argc, const char* const* argv);

}  // namespace bertcl::tools
