// SPDX-License-Identifier: Apache-2.0
// What the arguments of a program's kernels are called, as the driver's compiler read them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "opencl/kernel.hpp"

namespace bertcl::tests {

struct KernelArguments {
  std::string name;
  struct Argument {
    std::string name;
    std::string type;  // "float*", "int"
  };
  std::vector<Argument> arguments;
};

/// All kernels of the program `program`, built with -cl-kernel-arg-info for the first CPU; none
/// where the driver does not build it.
std::optional<std::vector<KernelArguments>> kernel_arguments(const std::string& program,
                                                             const opencl::Defines& defines);

}  // namespace bertcl::tests
