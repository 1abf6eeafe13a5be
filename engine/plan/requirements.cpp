// SPDX-License-Identifier: Apache-2.0
// What a variant needs of a device, as the variants ask it.
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

std::string needs_subgroups(Builder& b) {
  const std::string reason = needs_groups_of_256(b);
  return reason.empty() ? needs(b.context().capabilities().subgroups, true, "", "subgroups")
                        : reason;
}

std::string needs_dpas(Builder& b) {
  const opencl::Capabilities& device = b.context().capabilities();
  return needs(device.intel_dpas_8 || device.intel_dpas_16, !is_cpu(b), kMadeForGpus,
               "intel_dpas_8 or intel_dpas_16");
}

std::string needs_mfma(Builder& b) {
  const opencl::Capabilities& device = b.context().capabilities();
  return needs(device.amd_mfma_k16 || device.amd_mfma_k32, !is_cpu(b), kMadeForGpus,
               "amd_mfma_k16 or amd_mfma_k32");
}

std::string needs_wmma(Builder& b) {
  return needs(b.context().capabilities().amd_wmma, !is_cpu(b), kMadeForGpus, "amd_wmma");
}

std::string needs_matrix_f16(Builder& b) {
  const opencl::Capabilities& device = b.context().capabilities();
  return needs(device.matrix_f16 && opencl::matrix_unit_of(device), !is_cpu(b), kMadeForGpus,
               "matrix_f16");
}

std::string needs_groups_of_256(Builder& b) {
  const opencl::DeviceInfo& device = b.context().info();
  if (device.max_work_group_size < 256) return "the device has no work-groups of 256";
  return device.local_mem_bytes < 17 * 1024 ? "the device has no 17 KB of local memory" : "";
}

std::string needs_32_kb_for_groups(Builder& b) {
  if (b.context().info().local_mem_bytes < 32 * 1024)
    return "the device has no 32 KB of local memory";
  return needs_groups_of_256(b);
}

}  // namespace bertcl::plan
