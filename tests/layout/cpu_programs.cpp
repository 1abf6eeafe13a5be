// SPDX-License-Identifier: Apache-2.0
// cpu_programs: the programs that only CPUs get, by the tables of variants, one a line.
#include <array>
#include <cstdio>
#include <map>
#include <string>

#include "kernels/variants.hpp"

int main() {
  using namespace bertcl::kernels;
  std::map<std::string, bool> only_cpus;
  const auto note = [&](const std::string& program, const Needs& needs) {
    bool& only = only_cpus.emplace(program, true).first->second;
    only = only && needs.kind == DeviceKind::cpu;
  };
  const auto note_all = [&](const auto& variants) {
    for (const auto& variant : variants) {
      note(variant.program, variant.needs);
      if constexpr (requires { variant.small_m_program; })
        if (!variant.small_m_program.empty()) note(variant.small_m_program, variant.needs);
    }
  };
  note_all(gemm_s8_variants());
  note_all(gemm_f32_variants());
  note_all(std::array{gemm_f16_variant(), gemm_bf16_variant()});
  note_all(attention_s8_variants());
  note_all(attention_f32_variants());
  note_all(std::array{attention_f16_variant(), attention_bf16_variant()});
  note_all(position_scores_variants());
  note_all(rotary_variants());
  note_all(dynamic_quantize_variants());
  for (const auto& [program, only] : only_cpus)
    if (only) std::puts(program.c_str());
}
