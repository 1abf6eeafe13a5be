// SPDX-License-Identifier: Apache-2.0
// Probe kernels: build, run, compare with numbers computed here.
#include "opencl/probe/probe.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "bertcl/error.hpp"
#include "opencl/base/cl.hpp"
#include "opencl/device/cpu_features.hpp"
#include "opencl/launch/command_buffer.hpp"
#include "opencl/launch/persistent_kernel.hpp"
#include "opencl/probe/prober.hpp"
#include "opencl/program/binary.hpp"

namespace bertcl::opencl {

Capabilities Prober::run() {
  const DeviceInfo& device = context_.info();
  // NVIDIA's driver 580 reads freed memory at launches and releases once sub-buffers overlap.
  found_.overlapping_views = !device.has_nvidia_driver();
  if (!found_.overlapping_views)
    note(&Capabilities::overlapping_views, "the driver crashes on overlapping sub-buffers");
  // rusticl on llvmpipe and Oclgrind run in this process too, but compile for a virtual target:
  // x86 builtins and assembly end the process there.
  found_.in_process_cpu = device.is_cpu() && (device.platform.starts_with("Portable Computing") ||
                                              device.platform.starts_with("Intel"));
  if (!found_.in_process_cpu)
    note(&Capabilities::in_process_cpu,
         "kernels of " + device.platform + " do not run in this process as native CPU code");
  probe_x86();
  probe_sdot();
  probe_dot_products();
  extension(&Capabilities::fp16, "cl_khr_fp16", [&] { return adds_constant("probe_fp16", 2); });
  extension(&Capabilities::fp64, "cl_khr_fp64", [&] { return adds_constant("probe_fp64", 0); });
  // An extension once, now part of OpenCL 3.0 that a device may have without naming it.
  probe_if(device.has_subgroups, "the driver reports no sub-groups", &Capabilities::subgroups,
           [&] { return subgroup_probe(); });
  extension(&Capabilities::command_buffer, "cl_khr_command_buffer",
            [&] { return command_buffer_probe(); });
  probe_in_process();
  return found_;
}

bool Prober::begins(const std::string& name) {
  if (const auto skipped = options_.skipped.find(name); skipped != options_.skipped.end()) {
    found_.notes[name] = skipped->second;
    return false;
  }
  if (options_.on_begin) options_.on_begin(name);
  return true;
}

void Prober::probe(Flag flag, const std::function<bool()>& works) {
  if (!begins(capability_name(flag))) return;
  try {
    found_.*flag = works();
    if (!(found_.*flag)) note(flag, "the probe kernel returns wrong results");
  } catch (const Error& error) {
    // CL_OUT_OF_RESOURCES and its like.
    if (error.code() == ErrorCode::out_of_memory) found_.is_cacheable = false;
    const std::string message = error.what();
    note(flag, "the probe kernel failed: " + message.substr(0, message.find('\n')));
  }
}

void Prober::probe_if(bool may_work, const std::string& why_not, Flag flag,
                      const std::function<bool()>& works) {
  if (may_work)
    probe(flag, works);
  else
    note(flag, why_not);
}

void Prober::extension(Flag flag, const std::string& name, const std::function<bool()>& works) {
  probe_if(context_.info().has_extension(name), name + " is not reported by the driver", flag,
           works);
}

// Programs of the form out[i] = a[i] + added for small integers.
bool Prober::adds_constant(const std::string& program, int added) {
  std::vector<int32_t> values, expected;
  for (int i = 0; i < kLanes; ++i) {
    values.push_back(7 * i - 50);
    expected.push_back(7 * i - 50 + added);
  }
  return results(program, kLanes, kLanes, kLanes, {}, values) == expected;
}

void Prober::probe_sdot() {
  probe_if(found_.in_process_cpu && cpu_features().arm_sdot,
           found_.in_process_cpu ? "not supported by this CPU or OS" : kNotInProcess,
           &Capabilities::arm_sdot, [&] { return sdot_probe(); });
}

bool Prober::sdot_probe() {
  return results("probe_sdot", kLanes, kLanes / 4, 1, {}, data_.a, data_.b, data_.start) ==
         expected_dot4<int8_t, int8_t>(data_);
}

bool Prober::subgroup_probe() {
  constexpr int kItems = 64;
  std::vector<int32_t> values;
  for (int i = 0; i < kItems; ++i) values.push_back(i * i - 100);
  const auto result = results("probe_subgroups", 2 * kItems, kItems, kItems, {}, values);
  std::map<int32_t, int32_t> sum_of_group;
  for (size_t i = 0; i < kItems; ++i) sum_of_group[result[kItems + i]] += values[i];
  for (size_t i = 0; i < kItems; ++i)
    if (result[i] != sum_of_group[result[kItems + i]]) return false;
  return true;
}

// Two launches, the second of which reads what the first has written, replayed three times.
bool Prober::command_buffer_probe() {
  std::vector<int32_t> values(kLanes, 1);
  Buffer a = upload(context_, values), b = upload(context_, values);
  Kernel ramp = context_.kernel("probe_persistent", "probe_ramp");
  Kernel sum = context_.kernel("probe_persistent", "probe_sum");
  ramp.args(a, 3);
  sum.args(a, kLanes, 0.5f, b);
  CommandBuffer recorded(context_, CommandBuffer::Unprobed());
  recorded.add(ramp, {kLanes, 1, 1}, {1, 1, 1}, "probe");
  recorded.add(sum, {kLanes, 1, 1}, {1, 1, 1}, "probe");
  recorded.finalize();
  for (int replay = 0; replay < 3; ++replay) {
    a.fill(kPoison);
    b.fill(kPoison);
    recorded.enqueue();
    const std::vector<int32_t> sums = b.download<int32_t>();
    for (int i = 0; i < kLanes; ++i)
      if (sums[static_cast<size_t>(i)] != (3 * kLanes + kLanes * (kLanes - 1)) / 2 + i)
        return false;
  }
  return true;
}

void Prober::probe_in_process() {
  probe_if(found_.in_process_cpu, kNotInProcess, &Capabilities::persistent_kernel,
           [&] { return persistent_kernel_probe(); });
  probe_if(found_.in_process_cpu, kNotInProcess, &Capabilities::assembly_binaries,
           [&] { return assembly_binary_probe(); });
}

bool Prober::assembly_binary_probe() {
  const Kernel kernel = context_.kernel("probe_assembly", "probe_assembly");
  cl_program program = nullptr;
  check(clGetKernelInfo(kernel.native(), CL_KERNEL_PROGRAM, sizeof(program), &program, nullptr),
        "clGetKernelInfo");
  return !binary_of(program, context_.native_device()).empty();
}

// Two merged steps by one work-group, by one for each unit, and by more than there are units.
bool Prober::persistent_kernel_probe() {
  constexpr int kFirst = 7 * 5 * 3, kSecond = 64;
  std::vector<int32_t> expected(kFirst + kSecond);
  int sum = 0;
  for (int i = 0; i < kFirst; ++i) sum += expected[static_cast<size_t>(i)] = 2 * i - 9;
  for (int i = 0; i < kSecond; ++i) expected[static_cast<size_t>(kFirst + i)] = sum / 2 + i;

  Buffer out = context_.allocate(expected.size() * sizeof(int32_t));
  const std::uint64_t a = addresses_of(context_, std::array<const Buffer*, 1>{&out})[0];
  const std::uint64_t b = a + kFirst * sizeof(int32_t);
  std::vector<std::uint64_t> words;
  append_step(words, {0, 0, {7, 5, 3}, {a, static_cast<std::uint32_t>(-9)}});
  append_step(words,
              {1, kFirst, {kSecond, 1, 1}, {a, kFirst, std::bit_cast<std::uint32_t>(0.5f), b}});
  const Buffer steps = upload(context_, words);
  Buffer state = context_.allocate(kPersistentStateBytes);
  state.fill(0);
  const std::array<Kernel, 2> kernels{context_.unbuilt_kernel("probe_persistent", "probe_ramp"),
                                      context_.unbuilt_kernel("probe_persistent", "probe_sum")};
  Kernel merged = persistent_kernel_of(context_, kernels);
  merged.args(steps, state, out, 0, 2);
  for (const size_t groups : {size_t{1}, size_t{context_.info().compute_units}, size_t{64}}) {
    out.fill(kPoison);
    context_.queue().launch(merged, {groups, 1, 1}, {1, 1, 1}, "probe");
    if (out.download<int32_t>() != expected) return false;
  }
  return true;
}

std::span<const std::string_view> probe_programs() {
  static constexpr std::string_view programs[] = {
      "persistent", "probe_assembly",  "probe_copy_async", "probe_dot4",
      "probe_fp16", "probe_fp64",      "probe_matrix",     "probe_persistent",
      "probe_sdot", "probe_subgroups", "probe_wgmma",      "probe_x86"};
  return programs;
}

Capabilities run_probes(Context& context, const ProbeOptions& options) {
  return Prober(context, options).run();
}

}  // namespace bertcl::opencl
