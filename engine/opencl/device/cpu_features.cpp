// SPDX-License-Identifier: Apache-2.0
// CPUID by the compiler's runtime, which also checks with XGETBV that the OS saves the registers;
// on Arm what the kernel tells each process.
#include "opencl/device/cpu_features.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace bertcl::opencl {

Capabilities cpu_features() {
  Capabilities found;
#if defined(__x86_64__) || defined(__i386__)
  __builtin_cpu_init();
  found.avx2 = __builtin_cpu_supports("avx2");
  found.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  found.avx512_vnni = found.avx512 && __builtin_cpu_supports("avx512vnni");
  found.avx512_bf16 = found.avx512 && __builtin_cpu_supports("avx512bf16");
#if defined(__GNUC__) && !defined(__clang__)  // clang knows the name only from version 17 on
  found.avx_vnni = found.avx2 && __builtin_cpu_supports("avxvnni");
#endif
#elif defined(__aarch64__) && defined(__linux__)
  found.arm_sdot = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#endif
  return found;
}

}  // namespace bertcl::opencl
