// SPDX-License-Identifier: Apache-2.0
// What is different for a process in a container.
#pragma once
#include <filesystem>

namespace bertcl::tools {

/// CPUs that the cgroups of this process allow it (`docker run --cpus`, limits.cpu of Kubernetes),
/// rounded up; 0: there is no quota. The files are below `root`.
int cpu_quota(const std::filesystem::path& root = "/");

/// PoCL makes a thread for each core that it sees: more than the quota are stopped for most of each
/// period. Sets POCL_MAX_PTHREAD_COUNT where there is a quota below `cores`, unless it is set. Call
/// it before the first thread and the first call of OpenCL.
void limit_cpu_threads(int quota, int cores);

/// The first process of a container ignores SIGINT, SIGTERM and SIGHUP unless it has handlers:
/// these end it with 128 + the signal's number, as a shell would say.
void end_by_signals();

}  // namespace bertcl::tools
