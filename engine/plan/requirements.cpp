// SPDX-License-Identifier: Apache-2.0
// What an implementation needs of a device, as the ladders ask it.
#include "plan/requirements.hpp"

#include "opencl/capabilities.hpp"

namespace bertcl::plan {

std::string always(Builder&) { return ""; }

namespace {

bool is_cpu(Builder& b) { return b.context().info().type == "cpu"; }

/// `present` is what probing found: "" or the reason, which is one of capability only where the
/// device is of the kind that could have it.
std::string needs(bool present, bool right_kind, const char* other_kind, const char* capability) {
  if (present) return "";
  return right_kind ? std::string("the device has no ") + capability : other_kind;
}

}  // namespace

std::string needs_cpu(Builder& b) { return is_cpu(b) ? "" : kMadeForCpus; }

std::string needs_avx2(Builder& b) {
  return needs(b.context().capabilities().avx2, is_cpu(b), kMadeForCpus, "avx2");
}

std::string needs_avx512(Builder& b) {
  return needs(b.context().capabilities().avx512, is_cpu(b), kMadeForCpus, "avx512");
}

std::string needs_vnni(Builder& b) {
  return needs(b.context().capabilities().avx512_vnni, is_cpu(b), kMadeForCpus, "avx512_vnni");
}

std::string needs_avx_vnni(Builder& b) {
  return needs(b.context().capabilities().avx_vnni, is_cpu(b), kMadeForCpus, "avx_vnni");
}

std::string needs_bf16(Builder& b) {
  return needs(b.context().capabilities().avx512_bf16, is_cpu(b), kMadeForCpus, "avx512_bf16");
}

std::string needs_mma(Builder& b) {
  return needs(b.context().capabilities().ptx_mma_s8, !is_cpu(b), kMadeForGpus, "ptx_mma_s8");
}

std::string needs_groups_of_256(Builder& b) {
  const opencl::DeviceInfo& device = b.context().info();
  if (device.max_work_group_size < 256) return "the device has no work-groups of 256";
  return device.local_mem_bytes < 17 * 1024 ? "the device has no 17 KB of local memory" : "";
}

}  // namespace bertcl::plan
