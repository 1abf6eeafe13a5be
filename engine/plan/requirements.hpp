// SPDX-License-Identifier: Apache-2.0
// What a variant needs of a device, as the variants ask it.
#pragma once
#include <string>

#include "plan/builder.hpp"

namespace bertcl::plan {

/// Why a variant cannot run, as a sentence for the report; "" if it can.
using WhyNot = std::string (*)(Builder&);

/// Reasons of variants for another kind of device: these are not faster on this one, so the
/// report leaves them out.
inline constexpr const char* kMadeForCpus = "made for CPUs";
inline constexpr const char* kMadeForGpus = "made for GPUs";

std::string always(Builder&);
std::string needs_cpu(Builder& b);
std::string needs_avx2(Builder& b);
std::string needs_avx512(Builder& b);
std::string needs_vnni(Builder& b);
std::string needs_avx_vnni(Builder& b);
std::string needs_bf16(Builder& b);
std::string needs_mma(Builder& b);
std::string needs_dpas(Builder& b);
std::string needs_mfma(Builder& b);
std::string needs_wmma(Builder& b);
std::string needs_matrix_f16(Builder& b);
std::string needs_subgroups(Builder& b);         // and what the next asks
std::string needs_groups_of_256(Builder& b);     // and 17 KB of local memory
std::string needs_32_kb_for_groups(Builder& b);  // of 256

}  // namespace bertcl::plan
