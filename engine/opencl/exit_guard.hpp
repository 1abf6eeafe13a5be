// SPDX-License-Identifier: Apache-2.0
// Whether the process is running its exit handlers: CL compilers must not be used then.
#pragma once

namespace bertcl::opencl {

/// Registers an exit handler. Handlers and destructors of statics run in reverse order, so a static
/// Context that was complete before this call is destroyed after the handler. Called after the
/// first build and the first launch: a compiler sets up its own statics in both, and on PoCL a
/// context that compiles after they are gone ends in a segmentation fault.
void watch_exit();

/// True from the moment that the latest handler of watch_exit() has run.
bool process_is_ending();

}  // namespace bertcl::opencl
