// SPDX-License-Identifier: Apache-2.0
// What an implementation needs of a device, as the ladders ask it.
#include "plan/requirements.hpp"

#include "opencl/capabilities.hpp"

namespace bertcl::plan {

std::string always(Builder&) { return ""; }

std::string needs_cpu(Builder& b) {
  return b.context().info().type == "cpu" ? "" : "made for the wide vectors of CPUs";
}

std::string needs_avx2(Builder& b) {
  return b.context().capabilities().avx2 ? "" : "the device has no avx2";
}

std::string needs_avx512(Builder& b) {
  return b.context().capabilities().avx512 ? "" : "the device has no avx512";
}

std::string needs_vnni(Builder& b) {
  return b.context().capabilities().avx512_vnni ? "" : "the device has no avx512_vnni";
}

std::string needs_avx_vnni(Builder& b) {
  return b.context().capabilities().avx_vnni ? "" : "the device has no avx_vnni";
}

std::string needs_bf16(Builder& b) {
  return b.context().capabilities().avx512_bf16 ? "" : "the device has no avx512_bf16";
}

std::string needs_mma(Builder& b) {
  return b.context().capabilities().ptx_mma_s8 ? "" : "the device has no ptx_mma_s8";
}

std::string needs_groups_of_256(Builder& b) {
  const opencl::DeviceInfo& device = b.context().info();
  if (device.max_work_group_size < 256) return "the device has no work-groups of 256";
  return device.local_mem_bytes < 17 * 1024 ? "the device has no 17 KB of local memory" : "";
}

}  // namespace bertcl::plan
