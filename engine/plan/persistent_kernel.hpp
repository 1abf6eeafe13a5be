// SPDX-License-Identifier: Apache-2.0
// Which steps of a plan may share a launch.
#pragma once

namespace bertcl::plan {

class Builder;
struct Plan;

/// Gives the plan a kernel that runs steps one after the other (kernels_cl/persistent/persistent.cl), and
/// their kernels a number in it, where the device has shown that it runs one (`persistent_kernel`).
/// To be called when all steps are there, and nothing is built.
void add_persistent_kernel(Builder& b);

/// How many steps of a plan share launches with their neighbours, except while they are profiled.
int merged_steps(const Plan& plan);

}  // namespace bertcl::plan
