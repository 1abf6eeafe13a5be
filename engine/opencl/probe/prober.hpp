// SPDX-License-Identifier: Apache-2.0
// The probes of one device, and the numbers they use; for .cpp files of this folder.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "opencl/context.hpp"
#include "opencl/probe/probe.hpp"
#include "opencl/upload.hpp"

namespace bertcl::opencl {

inline constexpr int kLanes = 16;
inline constexpr uint8_t kPoison = 0xA5;
inline constexpr const char* kNotInProcess = "no in-process CPU device";

/// Sixteen lanes of four bytes whose products break wrong kernels: both ends of each type,
/// four different bytes (a swapped order), 255*127 twice (16-bit saturation), (-128)(-128) four
/// times, and start values next to the ends of s32 (saturation instead of wrapping).
struct ProbeData {
  std::vector<uint8_t> a;  // bytes: u8, or s8 where the probe reads them so
  std::vector<int8_t> b;
  std::vector<int32_t> start;
};
ProbeData probe_data();

/// start + sum of four products in wrapping s32.
template <typename A, typename B>
std::vector<int32_t> expected_dot4(const ProbeData& data) {
  std::vector<int32_t> sums;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    auto sum = static_cast<uint32_t>(data.start[lane]);
    for (size_t k = 4 * lane; k < 4 * lane + 4; ++k)
      sum += static_cast<uint32_t>(int{static_cast<A>(data.a[k])} * int{static_cast<B>(data.b[k])});
    sums.push_back(static_cast<int32_t>(sum));
  }
  return sums;
}

class Prober {
 public:
  Prober(Context& context, const ProbeOptions& options)
      : context_(context), options_(options), data_(probe_data()) {}
  Capabilities run();

 private:
  /// What the kernel of `program` named like it writes: `count` values after `operands`.
  template <typename T = int32_t, typename... Operands>
  std::vector<T> results(const std::string& program, size_t count, size_t items, size_t group,
                         const Defines& defines, const std::vector<Operands>&... operands) {
    Buffer out = context_.allocate(count * sizeof(T));
    out.fill(kPoison);
    Kernel kernel = context_.kernel(program, program, defines);
    kernel.args(upload(context_, operands)..., out);
    context_.queue().launch(kernel, {items, 1, 1}, {group, 1, 1}, "probe");
    return out.download<T>();
  }

  using Flag = bool Capabilities::*;
  /// False, with a note, for skipped probes; else reports that the probe begins.
  bool begins(const std::string& name);
  /// Notes why a flag stays false.
  void note(Flag flag, std::string why) { found_.notes[capability_name(flag)] = std::move(why); }
  /// Sets one flag by a probe; a build error or a wrong number becomes a note.
  void probe(Flag flag, const std::function<bool()>& works);
  void probe_if(bool may_work, const std::string& why_not, Flag flag,
                const std::function<bool()>& works);
  void extension(Flag flag, const std::string& name, const std::function<bool()>& works);

  void probe_x86();
  void probe_sdot();
  bool sdot_probe();
  void probe_dot_products();
  void probe_in_process();
  bool adds_constant(const std::string& program, int added);
  bool subgroup_probe();
  bool dot4_probe(int backend);
  void probe_matrix_units(bool nvidia, bool amd);
  bool matrix_probe(const MatrixUnit& unit, bool half);
  bool wgmma_probe();
  bool cp_async_probe();
  bool persistent_kernel_probe();
  bool assembly_binary_probe();
  bool command_buffer_probe();

  Context& context_;
  const ProbeOptions& options_;
  ProbeData data_;
  Capabilities found_;
};

}  // namespace bertcl::opencl
