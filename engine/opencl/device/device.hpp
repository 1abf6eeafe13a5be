// SPDX-License-Identifier: Apache-2.0
// The OpenCL devices of this machine, in one flat list over all platforms.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bertcl::opencl {

/// What a driver reports about one device. Its real capabilities are in capabilities.hpp.
struct DeviceInfo {
  int index = 0;                 ///< position in list_devices(); -1: of a caller, not listed
  std::string platform;          ///< for example "Portable Computing Language"
  std::string platform_version;  ///< for example "OpenCL 3.0 PoCL 3.1"
  std::string name;
  std::string vendor;
  std::string version;  ///< version of OpenCL, as the device gives it
  std::string driver;   ///< version of the driver
  std::string type;     ///< "cpu", "gpu" or "accelerator"
  unsigned compute_units = 0;
  uint64_t global_mem_bytes = 0;
  uint64_t max_alloc_bytes = 0;      ///< largest single buffer
  uint64_t local_mem_bytes = 0;      ///< local memory of one work-group
  uint64_t max_work_group_size = 0;  ///< work-items of one work-group
  unsigned base_align_bytes = 1;     ///< an offset of Buffer::view() is a multiple of it
  bool unified_memory = false;       ///< host and device share their memory: mapping copies nothing
  bool correctly_rounded_divide = false;  ///< fp32 division and square root can be IEEE 754 exact
  bool has_subgroups = false;  ///< by cl_khr_subgroups, or as a part of OpenCL 2.1 and later
  /// The least width of sub-groups of an Intel GPU, whose compiler chooses among several widths;
  /// else 0.
  unsigned min_subgroup_width = 0;
  std::vector<std::string> extensions;

  /// True if the driver reports the extension: a hint about what is worth probing, not a proof.
  bool has_extension(const std::string& extension) const;

  /// NVIDIA's own, not for example rusticl on the same GPU.
  bool has_nvidia_driver() const { return platform == "NVIDIA CUDA"; }

  bool is_cpu() const { return type == "cpu"; }
  bool is_gpu() const { return type == "gpu"; }
  bool is_intel_gpu() const { return is_gpu() && vendor.find("Intel") != std::string::npos; }

  /// Compute units that a work-group occupies. Intel's GPUs count their EUs, which run eight
  /// threads of one sub-group each.
  std::size_t units_of_group(std::size_t items) const;
};

/// All devices that kernels run on: available and little-endian, with a compiler, of OpenCL 1.2 or
/// later, whose floats are rounded to nearest and have infinity and NaN. Throws Error if there is
/// none, with what is missing or how to install PoCL.
std::vector<DeviceInfo> list_devices();

/// The device that `selector` names: an index, "cpu", "gpu" or "accelerator" (the first of that
/// type), or a part of a platform or device name in any case. An empty selector reads the
/// environment variable BERTCL_DEVICE; where that is empty too, the first GPU, else the first CPU,
/// else device 0. Throws Error with the list of devices if none matches.
DeviceInfo select_device(const std::string& selector);

}  // namespace bertcl::opencl
