// SPDX-License-Identifier: Apache-2.0
// Preloaded, makes the device of a program look like another one, as the environment says:
//
//   OTHER_TYPE=gpu                  the type of every device
//   OTHER_VENDOR="NVIDIA Corporation"
//   OTHER_PLATFORM="NVIDIA CUDA", OTHER_NAME="NVIDIA H100"
//   OTHER_PTX=sm_90                 binaries are PTX for this target, with a comment for sm_90a
//                                   where the source has one; from PTX for sm_90a in which it is
//                                   open, the program is made with -DOPENED=1
//   OTHER_DEVICES=2                 with OTHER_PTX: devices of the context. Binaries of programs
//                                   are listed for each, this one's last
//   OTHER_UNITS=64                  compute units
//   OTHER_VERSION="OpenCL 2.0 x"    the version, and that of OpenCL C with it
//   OTHER_HIDDEN=cl_khr_fp16,...    extensions that are not listed; of cl_khr_subgroups also the
//                                   number of sub-groups, which the query of OpenCL 2.1 gives
//   OTHER_ADDED=cl_khr_subgroups    one that is listed
//   OTHER_SUBGROUPS=16,32           widths of sub-groups of cl_intel_required_subgroup_size
//   OTHER_GROUP=64                  most work-items of a group, of the device
//   OTHER_KERNEL_GROUP=64           of every kernel, as where registers limit it: a launch of
//                                   larger groups fails with CL_INVALID_WORK_GROUP_SIZE
//   OTHER_LOCAL=16384               bytes of local memory
//   OTHER_FLOATS=8                  bits of CL_DEVICE_SINGLE_FP_CONFIG
//   OTHER_LARGEST=65536             bytes of the largest buffer
//   OTHER_BUILD="-5 TEXT..."        programs whose source or options contain a TEXT are not built
//   OTHER_LAUNCH="-5 NAME..."       launches of kernels of these names fail; of NAME:256 in groups
//                                   of that many work-items, of NAME/-DA=1 only of programs with
//                                   this option
//   OTHER_ONE_ITEM=refuse           launches of more than one group, each of one work-item, fail
//   OTHER_LOG=FILE                  a line for each build (options) and each launch (kernel, global
//                                   size, local size) is appended
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

namespace {

std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::size_t number(const char* name) { return std::strtoull(setting(name).c_str(), nullptr, 10); }

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void log(const std::string& line) {
  const std::string path = setting("OTHER_LOG");
  if (path.empty()) return;
  if (std::FILE* file = std::fopen(path.c_str(), "a")) {
    std::fputs((line + "\n").c_str(), file);
    std::fclose(file);
  }
}

/// The status of a setting "STATUS TEXT..." where `is_meant` says so of a TEXT; else CL_SUCCESS.
template <typename Predicate>
cl_int refusal(const char* name, const Predicate& is_meant) {
  std::istringstream words(setting(name));
  cl_int status = CL_SUCCESS;
  words >> status;
  for (std::string text; words >> text;)
    if (is_meant(text)) return status;
  return CL_SUCCESS;
}

bool lists(const std::string& names, const std::string& name) {
  return ("," + names + ",").find("," + name + ",") != std::string::npos;
}

/// Answers a query with a value of the caller's choice.
cl_int answer(const void* value, std::size_t bytes, std::size_t room, void* to,
              std::size_t* needed) {
  if (needed) *needed = bytes;
  if (!to) return CL_SUCCESS;
  if (room < bytes) return CL_INVALID_VALUE;
  std::memcpy(to, value, bytes);
  return CL_SUCCESS;
}

cl_int answer(const std::string& text, std::size_t room, void* to, std::size_t* needed) {
  return answer(text.c_str(), text.size() + 1, room, to, needed);
}

/// The source of each program. A program may be freed and another have its address: then the new
/// one replaces it.
std::mutex mutex;
std::map<cl_program, std::string>& sources() {
  static auto* all = new std::map<cl_program, std::string>;
  return *all;
}

/// The binary of a program that has a source.
std::string ptx_of(cl_program program) {
  const std::lock_guard lock(mutex);
  const bool has_comment = sources()[program].find("/*sm_90a: ") != std::string::npos;
  std::ostringstream text;
  text << "// program " << program << "\n.version 8.0\n.target " << setting("OTHER_PTX")
       << ", texmode_independent\n"
       << (has_comment ? "/*sm_90a: wgmma;*/\n" : "");
  return text.str();
}

std::string name_of(cl_kernel kernel) {
  char name[256] = "";
  clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof(name), name, nullptr);
  return name;
}

std::string options_of(cl_kernel kernel) {
  cl_program program = nullptr;
  cl_device_id device = nullptr;
  char options[4096] = "";
  clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof(program), &program, nullptr);
  next<decltype(&::clGetProgramInfo)>("clGetProgramInfo")(program, CL_PROGRAM_DEVICES,
                                                          sizeof(device), &device, nullptr);
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_OPTIONS, sizeof(options), options,
                        nullptr);
  return std::string(options) + " ";
}

cl_int launch_refusal(cl_kernel kernel, const std::string& name, std::size_t of_group) {
  return refusal("OTHER_LAUNCH", [&](const std::string& text) {
    const std::size_t slash = text.find('/');
    const std::string which = text.substr(0, slash);
    if (which != name && which != name + ":" + std::to_string(of_group)) return false;
    return slash == std::string::npos ||
           options_of(kernel).find(text.substr(slash + 1) + " ") != std::string::npos;
  });
}

}  // namespace

extern "C" {

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room, void* to,
                       size_t* needed) {
  static const auto real = next<decltype(&::clGetDeviceInfo)>("clGetDeviceInfo");
  const std::string version = setting("OTHER_VERSION"), hidden = setting("OTHER_HIDDEN");
  if (what == CL_DEVICE_TYPE && setting("OTHER_TYPE") == "gpu") {
    const cl_device_type type = CL_DEVICE_TYPE_GPU;
    return answer(&type, sizeof(type), room, to, needed);
  }
  if (const std::string name = setting("OTHER_NAME"); what == CL_DEVICE_NAME && !name.empty())
    return answer(name, room, to, needed);
  if (const std::string vendor = setting("OTHER_VENDOR");
      what == CL_DEVICE_VENDOR && !vendor.empty())
    return answer(vendor, room, to, needed);
  if (what == CL_DEVICE_VERSION && !version.empty()) return answer(version, room, to, needed);
  if (what == CL_DEVICE_OPENCL_C_VERSION && !version.empty())
    return answer("OpenCL C" + version.substr(6), room, to, needed);
  if (what == CL_DEVICE_EXTENSIONS && !(hidden + setting("OTHER_ADDED")).empty()) {
    std::string all(16384, '\0');
    if (const cl_int status = real(device, what, all.size(), all.data(), nullptr)) return status;
    std::istringstream words(all.c_str());
    std::string kept = setting("OTHER_ADDED");
    for (std::string word; words >> word;)
      if (!lists(hidden, word)) kept += " " + word;
    return answer(kept, room, to, needed);
  }
  if (what == CL_DEVICE_MAX_NUM_SUB_GROUPS && lists(hidden, "cl_khr_subgroups"))
    return CL_INVALID_VALUE;
  if (const std::string widths = setting("OTHER_SUBGROUPS");
      what == CL_DEVICE_SUB_GROUP_SIZES_INTEL && !widths.empty()) {
    std::vector<size_t> sizes;
    std::istringstream words(widths);
    for (std::string word; std::getline(words, word, ',');) sizes.push_back(std::stoul(word));
    return answer(sizes.data(), sizes.size() * sizeof(size_t), room, to, needed);
  }
  const cl_int status = real(device, what, room, to, needed);
  if (status != CL_SUCCESS || !to) return status;
  if (const std::size_t group = number("OTHER_GROUP");
      group > 0 && what == CL_DEVICE_MAX_WORK_GROUP_SIZE)
    *static_cast<size_t*>(to) = group;
  if (const std::size_t units = number("OTHER_UNITS");
      units > 0 && what == CL_DEVICE_MAX_COMPUTE_UNITS)
    *static_cast<cl_uint*>(to) = static_cast<cl_uint>(units);
  if (const std::size_t local = number("OTHER_LOCAL");
      local > 0 && what == CL_DEVICE_LOCAL_MEM_SIZE)
    *static_cast<cl_ulong*>(to) = local;
  if (const std::size_t floats = number("OTHER_FLOATS");
      floats > 0 && what == CL_DEVICE_SINGLE_FP_CONFIG)
    *static_cast<cl_device_fp_config*>(to) = floats;
  if (const std::size_t largest = number("OTHER_LARGEST");
      largest > 0 && what == CL_DEVICE_MAX_MEM_ALLOC_SIZE)
    *static_cast<cl_ulong*>(to) = largest;
  return status;
}

cl_int clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                cl_kernel_work_group_info what, size_t room, void* to,
                                size_t* needed) {
  static const auto real = next<decltype(&::clGetKernelWorkGroupInfo)>("clGetKernelWorkGroupInfo");
  const cl_int status = real(kernel, device, what, room, to, needed);
  const std::size_t most = number("OTHER_KERNEL_GROUP");
  if (status == CL_SUCCESS && to && most > 0 && what == CL_KERNEL_WORK_GROUP_SIZE)
    *static_cast<size_t*>(to) = std::min(most, *static_cast<size_t*>(to));
  return status;
}

cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char** strings,
                                     const size_t* lengths, cl_int* status) {
  static const auto real =
      next<decltype(&::clCreateProgramWithSource)>("clCreateProgramWithSource");
  const cl_program program = real(context, count, strings, lengths, status);
  const std::lock_guard lock(mutex);
  std::string& source = sources()[program];
  source.clear();
  for (cl_uint i = 0; i < count; ++i)
    source += lengths && lengths[i] ? std::string(strings[i], lengths[i]) : strings[i];
  return program;
}

cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t room, void* to,
                         size_t* needed) {
  static const auto real = next<decltype(&::clGetPlatformInfo)>("clGetPlatformInfo");
  const std::string name = setting("OTHER_PLATFORM");
  if (what == CL_PLATFORM_NAME && !name.empty()) return answer(name, room, to, needed);
  return real(platform, what, room, to, needed);
}

cl_int clGetProgramInfo(cl_program program, cl_program_info what, size_t room, void* to,
                        size_t* needed) {
  static const auto real = next<decltype(&::clGetProgramInfo)>("clGetProgramInfo");
  if (setting("OTHER_PTX").empty()) return real(program, what, room, to, needed);
  const std::string ptx = ptx_of(program);
  const std::size_t last = std::max<std::size_t>(1, number("OTHER_DEVICES")) - 1;
  const auto list = [&](const auto& entries) {
    return answer(entries.data(), entries.size() * sizeof(entries[0]), room, to, needed);
  };
  if (what == CL_PROGRAM_DEVICES) {
    std::vector<cl_device_id> devices(last + 1, nullptr);
    real(program, what, sizeof(cl_device_id), &devices[last], nullptr);
    return list(devices);
  }
  if (what == CL_PROGRAM_BINARY_SIZES) {
    std::vector<size_t> sizes(last + 1, 0);
    sizes[last] = ptx.size();
    return list(sizes);
  }
  if (what != CL_PROGRAM_BINARIES) return real(program, what, room, to, needed);
  if (to && room < (last + 1) * sizeof(void*)) return CL_INVALID_VALUE;
  if (to) std::memcpy(static_cast<void**>(to)[last], ptx.data(), ptx.size());
  return CL_SUCCESS;
}

cl_program clCreateProgramWithBinary(cl_context context, cl_uint count, const cl_device_id* devices,
                                     const size_t* lengths, const unsigned char** binaries,
                                     cl_int* binary_status, cl_int* status) {
  static const auto real =
      next<decltype(&::clCreateProgramWithBinary)>("clCreateProgramWithBinary");
  if (setting("OTHER_PTX").empty())
    return real(context, count, devices, lengths, binaries, binary_status, status);
  const std::string ptx(reinterpret_cast<const char*>(binaries[0]), lengths[0]);
  const bool is_open = ptx.find("\n.version 8.4\n.target sm_90a, ") != std::string::npos &&
                       ptx.find("\nwgmma;\n") != std::string::npos;
  log(is_open ? "ptx for sm_90a" : "ptx");
  void* from = nullptr;
  std::string source;
  if (is_open && std::sscanf(ptx.c_str(), "// program %p", &from) == 1) {
    const std::lock_guard lock(mutex);
    source = "#define OPENED 1\n" + sources()[static_cast<cl_program>(from)];
  }
  if (source.empty()) {
    if (status) *status = CL_INVALID_BINARY;
    return nullptr;
  }
  const char* text = source.c_str();
  return clCreateProgramWithSource(context, 1, &text, nullptr, status);
}

cl_int clBuildProgram(cl_program program, cl_uint devices, const cl_device_id* ids,
                      const char* options, void(CL_CALLBACK* notify)(cl_program, void*),
                      void* data) {
  static const auto real = next<decltype(&::clBuildProgram)>("clBuildProgram");
  log(std::string("build ") + (options ? options : ""));
  {
    const std::lock_guard lock(mutex);
    const std::string all = sources()[program] + (options ? options : "");
    const auto has = [&](const std::string& text) { return all.find(text) != std::string::npos; };
    if (const cl_int status = refusal("OTHER_BUILD", has)) return status;
  }
  return real(program, devices, ids, options, notify, data);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t* offset, const size_t* global, const size_t* local,
                              cl_uint waits, const cl_event* events, cl_event* event) {
  static const auto real = next<decltype(&::clEnqueueNDRangeKernel)>("clEnqueueNDRangeKernel");
  const std::string name = name_of(kernel);
  std::string line = "launch " + name;
  size_t items = 1, of_group = 1;
  for (cl_uint d = 0; d < dimensions; ++d) items *= global[d], of_group *= local ? local[d] : 1;
  for (const size_t* sizes : {global, local})
    for (cl_uint d = 0; sizes && d < dimensions; ++d)
      line += (d ? "x" : " ") + std::to_string(sizes[d]);
  log(line);
  if (const cl_int status = launch_refusal(kernel, name, of_group)) return status;
  const size_t most = number("OTHER_KERNEL_GROUP");
  if (most > 0 && of_group > most) return CL_INVALID_WORK_GROUP_SIZE;
  if (local && of_group == 1 && items > 1 && setting("OTHER_ONE_ITEM") == "refuse")
    return CL_INVALID_WORK_GROUP_SIZE;
  return real(queue, kernel, dimensions, offset, global, local, waits, events, event);
}
}
