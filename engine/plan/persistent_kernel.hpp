// SPDX-License-Identifier: Apache-2.0
// Which steps of a plan may share a launch.
#pragma once

namespace bertcl::plan {

class Builder;
struct Plan;

/// Gives the plan a kernel that runs steps one after the other
/// (kernels_cl/persistent/persistent.cl), and their kernels a number in it, if the device has the
/// capability `persistent_kernel`. Call it when all steps exist and nothing is built yet.
void add_persistent_kernel(Builder& b);

/// The number of steps that share launches with their neighbours, except while profiled.
int merged_steps(const Plan& plan);

}  // namespace bertcl::plan
