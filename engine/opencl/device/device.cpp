// SPDX-License-Identifier: Apache-2.0
// The OpenCL devices of this machine.
#include "opencl/device/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>

#include "bertcl/error.hpp"
#include "opencl/base/cl.hpp"
#include "opencl/base/exit_guard.hpp"
#include "opencl/device/device_id.hpp"
#include "support/ceil_div.hpp"
#include "support/did_you_mean.hpp"
#include "support/lower_case.hpp"

namespace bertcl::opencl {
namespace {

constexpr const char* kInstallHint =
    "install a driver: the vendor's OpenCL package for a GPU, or PoCL for the CPU "
    "(apt-get install pocl-opencl-icd)";

std::string type_name(cl_device_type type) {
  if (type & CL_DEVICE_TYPE_GPU) return "gpu";
  if (type & CL_DEVICE_TYPE_CPU) return "cpu";
  return "accelerator";
}

unsigned min_subgroup_width(cl_device_id device, const DeviceInfo& info) {
  std::size_t bytes = 0;
  if (!info.is_intel_gpu() || !info.has_extension("cl_intel_required_subgroup_size") ||
      clGetDeviceInfo(device, CL_DEVICE_SUB_GROUP_SIZES_INTEL, 0, nullptr, &bytes) != CL_SUCCESS ||
      bytes < 2 * sizeof(std::size_t))
    return 0;
  std::vector<std::size_t> widths(bytes / sizeof(std::size_t));
  check(clGetDeviceInfo(device, CL_DEVICE_SUB_GROUP_SIZES_INTEL, bytes, widths.data(), nullptr),
        "clGetDeviceInfo");
  return static_cast<unsigned>(*std::ranges::min_element(widths));
}

DeviceInfo describe(cl_platform_id platform, cl_device_id device) {
  DeviceInfo info;
  info.platform = string_info(clGetPlatformInfo, platform, CL_PLATFORM_NAME);
  info.platform_version = string_info(clGetPlatformInfo, platform, CL_PLATFORM_VERSION);
  info.name = string_info(clGetDeviceInfo, device, CL_DEVICE_NAME);
  info.vendor = string_info(clGetDeviceInfo, device, CL_DEVICE_VENDOR);
  info.version = string_info(clGetDeviceInfo, device, CL_DEVICE_VERSION);
  info.driver = string_info(clGetDeviceInfo, device, CL_DRIVER_VERSION);
  info.type = type_name(device_value<cl_device_type>(device, CL_DEVICE_TYPE));
  info.compute_units = device_value<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS);
  info.global_mem_bytes = device_value<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE);
  info.max_alloc_bytes = device_value<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  info.local_mem_bytes = device_value<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE);
  info.max_work_group_size = device_value<size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  info.base_align_bytes =
      std::max(1u, device_value<cl_uint>(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8);
  info.unified_memory = device_value<cl_bool>(device, CL_DEVICE_HOST_UNIFIED_MEMORY) == CL_TRUE;
  info.correctly_rounded_divide =
      (device_value<cl_device_fp_config>(device, CL_DEVICE_SINGLE_FP_CONFIG) &
       CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  std::istringstream words(string_info(clGetDeviceInfo, device, CL_DEVICE_EXTENSIONS));
  for (std::string word; words >> word;) info.extensions.push_back(word);
  info.has_subgroups = info.has_extension("cl_khr_subgroups") ||
                       device_value<cl_uint>(device, CL_DEVICE_MAX_NUM_SUB_GROUPS) > 0;
  info.min_subgroup_width = min_subgroup_width(device, info);
  return info;
}

/// What a device lacks that every kernel takes for granted; "" for nothing. Devices of the embedded
/// profile may round towards zero.
std::string lack_of(cl_device_id device, const std::string& version) {
  const auto denies = [&](cl_device_info what) {
    cl_bool has = CL_TRUE;  // where the driver does not tell
    return clGetDeviceInfo(device, what, sizeof(has), &has, nullptr) == CL_SUCCESS && !has;
  };
  if (denies(CL_DEVICE_AVAILABLE)) return "it is not available";
  if (denies(CL_DEVICE_COMPILER_AVAILABLE)) return "it has no compiler";
  if (denies(CL_DEVICE_ENDIAN_LITTLE)) return "it is big-endian";
  if (version.starts_with("OpenCL 1.0") || version.starts_with("OpenCL 1.1"))
    return "it supports " + version + ", but 1.2 or later is required";
  const auto floats = device_value<cl_device_fp_config>(device, CL_DEVICE_SINGLE_FP_CONFIG);
  if (floats == 0) return "";  // the driver does not tell
  if (!(floats & CL_FP_ROUND_TO_NEAREST)) return "it does not support round-to-nearest for floats";
  if (!(floats & CL_FP_INF_NAN)) return "it does not support infinity and NaN";
  return "";
}

std::string listing(const std::vector<DeviceInfo>& devices) {
  std::ostringstream out;
  for (const auto& d : devices)
    out << "\n  " << d.index << ": " << d.type << ", " << d.platform << ", " << d.name;
  return out.str();
}

/// The devices of a platform that kernels run on, in front of which are `before`; why others are
/// not among them is appended to `unfit`.
std::vector<Device> devices_of(cl_platform_id platform, std::size_t before, std::string& unfit) {
  std::vector<Device> found;
  cl_uint count = 0;
  const cl_int status = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
  if (status == CL_DEVICE_NOT_FOUND) return found;
  check(status, "clGetDeviceIDs");
  if (count == 0) return found;
  std::vector<cl_device_id> ids(count);
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr), "clGetDeviceIDs");
  for (cl_device_id id : ids) {
    Device device{describe(platform, id), id, platform};
    if (const std::string lack = lack_of(id, device.info.version); !lack.empty()) {
      unfit += fmt::format("; {}: {}", device.info.name, lack);
      continue;
    }
    device.info.index = static_cast<int>(before + found.size());
    found.push_back(std::move(device));
  }
  return found;
}

}  // namespace

std::vector<Device> find_devices() {
  refuse_fork();
  std::vector<Device> found;
  std::string unfit;
  cl_uint count = 0;
  // Without any platform the loader answers CL_PLATFORM_NOT_FOUND_KHR: the same as zero platforms.
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) count = 0;
  std::vector<cl_platform_id> platforms(count);
  if (count > 0) check(clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
  for (cl_platform_id platform : platforms) {
    try {
      for (Device& device : devices_of(platform, found.size(), unfit))
        found.push_back(std::move(device));
    } catch (const Error& error) {  // of one driver among several
      unfit +=
          fmt::format("; platform {}: {}",
                      string_info(clGetPlatformInfo, platform, CL_PLATFORM_NAME), error.what());
    }
  }
  if (found.empty() && !unfit.empty())
    throw Error("no OpenCL device can be used" + unfit, ErrorCode::device);
  if (found.empty())
    throw Error("no OpenCL device found (platforms: " + std::to_string(platforms.size()) + "): " +
                    (platforms.empty()
                         ? kInstallHint
                         : "a driver is installed but offers no device; PoCL offers none if its "
                           "cache folder is not writable: set POCL_CACHE_DIR to a writable folder"),
                ErrorCode::device);
  return found;
}

namespace {

/// The device that `wanted` names in lower case, or a GPU if it is empty; end() if there is none.
std::vector<Device>::const_iterator find_named(const std::vector<Device>& devices,
                                               const std::string& wanted) {
  const auto first = [&](auto&& fits) {
    return std::ranges::find_if(devices, [&](const Device& d) { return fits(d.info); });
  };
  const auto of_type = [&](const std::string& type) {
    return first([&](const DeviceInfo& d) { return d.type == type; });
  };
  if (wanted.empty()) {
    for (const char* type : {"gpu", "cpu"})
      if (const auto device = of_type(type); device != devices.end()) return device;
    return devices.begin();
  }
  if (std::ranges::all_of(wanted, [](unsigned char c) { return std::isdigit(c); }))
    return first([&](const DeviceInfo& d) { return std::to_string(d.index) == wanted; });
  if (wanted == "cpu" || wanted == "gpu" || wanted == "accelerator") return of_type(wanted);
  return first([&](const DeviceInfo& d) {
    return lower_case(d.platform).find(wanted) != std::string::npos ||
           lower_case(d.name).find(wanted) != std::string::npos;
  });
}

Error no_match(const std::string& source, const std::string& given,
               const std::vector<Device>& devices) {
  std::vector<DeviceInfo> infos;
  std::vector<std::string> names = {"cpu", "gpu", "accelerator"};
  for (const Device& d : devices) {
    infos.push_back(d.info);
    names.insert(names.end(), {d.info.name, d.info.platform});
  }
  return Error(source + " '" + given + "' matches no OpenCL device" + did_you_mean(given, names) +
                   "; give an index, cpu, gpu, accelerator or part of the "
                   "name of a platform or device:" +
                   listing(infos),
               ErrorCode::device);
}

}  // namespace

Device find_device(const std::string& selector) {
  const std::vector<Device> devices = find_devices();
  std::string given = selector;
  std::string source = "device selector";
  if (given.empty()) {
    if (const char* variable = std::getenv("BERTCL_DEVICE")) given = variable;
    source = "environment variable BERTCL_DEVICE";
  }
  const auto device = find_named(devices, lower_case(given));
  if (device == devices.end()) throw no_match(source, given, devices);
  return *device;
}

Device device_of(cl_device_id id) {
  std::vector<Device> devices = find_devices();
  const auto platform = device_value<cl_platform_id>(id, CL_DEVICE_PLATFORM);
  Device device{describe(platform, id), id, platform};
  if (const std::string lack = lack_of(id, device.info.version); !lack.empty())
    throw Error(fmt::format("device '{}' cannot be used: {}", device.info.name, lack),
                ErrorCode::device);
  // Of a part of a device, that of the whole.
  device.info.index = -1;
  for (cl_device_id whole = id; whole && device.info.index < 0;
       whole = device_value<cl_device_id>(whole, CL_DEVICE_PARENT_DEVICE))
    if (const auto listed = std::ranges::find(devices, whole, &Device::id); listed != devices.end())
      device.info.index = listed->info.index;
  return device;
}

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> infos;
  for (Device& device : find_devices()) infos.push_back(std::move(device.info));
  return infos;
}

DeviceInfo select_device(const std::string& selector) { return find_device(selector).info; }

bool DeviceInfo::has_extension(const std::string& extension) const {
  return std::ranges::find(extensions, extension) != extensions.end();
}

std::size_t DeviceInfo::units_of_group(std::size_t items) const {
  if (!is_intel_gpu()) return 1;
  const std::size_t of_unit = 8 * std::size_t{std::max(min_subgroup_width, 8u)};
  return std::max<std::size_t>(1, ceil_div(items, of_unit));
}

}  // namespace bertcl::opencl
