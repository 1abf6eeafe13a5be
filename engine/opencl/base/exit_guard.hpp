// SPDX-License-Identifier: Apache-2.0
// Where CL must not be used: compilers while a process runs its exit handlers, any of it in a
// child of fork().
#pragma once

namespace bertcl::opencl {

/// Registers an exit handler. Handlers and destructors of statics run in reverse order, so a static
/// Context that was complete before this call is destroyed after the handler. Called after the
/// first build and the first launch: a compiler sets up its own statics in both, and on PoCL a
/// context that compiles after they are gone ends in a segmentation fault.
void watch_exit();

/// Throws Error in a child that fork() made after the first call: the child inherits the driver's
/// locks but not its threads, and would deadlock.
void refuse_fork();

/// True in such a child.
bool process_was_forked();

/// True from the moment that the latest handler of watch_exit() has run, and in such a
/// child.
bool process_is_ending();

}  // namespace bertcl::opencl
