// SPDX-License-Identifier: Apache-2.0
// Arguments for a kernel that is launched immediately.
#pragma once
#include "kernels/contracts.hpp"
#include "opencl/kernel.hpp"

namespace bertcl::kernels {

/// Sets all arguments of `kernel`, whose contract this is; does not build it.
template <template <class> class Contract>
void set(opencl::Kernel& kernel, const Contract<opencl::KernelArgument>& arguments) {
  check_kernel(kernel.name(), parameters_of<Contract>.data());
  unsigned index = 0;
  for (const opencl::KernelArgument& value : in_order(arguments)) kernel.set(index++, value);
}

}  // namespace bertcl::kernels
