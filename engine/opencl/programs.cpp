// SPDX-License-Identifier: Apache-2.0
// Compilation of programs with their options, errors and binaries.
#include "opencl/programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "bertcl/error.hpp"
#include "bertcl/stopwatch.hpp"
#include "opencl/cl.hpp"
#include "opencl/exit_guard.hpp"
#include "opencl/sources.hpp"
#include "opencl/status.hpp"

namespace bertcl::opencl {
namespace {

std::string build_log(cl_program program, cl_device_id device) {
  size_t bytes = 0;
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
  std::string log(bytes, '\0');
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  return log.empty() ? "(the driver gave no build log)" : log;
}

}  // namespace

Programs::Programs(ContextHandle context, _cl_device_id* device, const DeviceInfo& info)
    : context_(std::move(context)), device_(device), info_(info), cache_(info) {}

std::string Programs::options(const Defines& defines) const {
  // Kernels are written in OpenCL C 1.2, which every device compiles; built-in functions of
  // sub-groups and integer dot products exist only in the newer language.
  const bool newer = info_.has_subgroups || info_.has_extension("cl_khr_integer_dot_product");
  const bool has_3 = info_.version.starts_with("OpenCL 3.");
  std::string options = newer && has_3 ? "-cl-std=CL3.0" : "-cl-std=CL1.2";
  // Quantization divides by a scale and rounds half to even: a division that is off by one unit in
  // the last place moves ties. So neither -cl-fast-relaxed-math nor -cl-mad-enable: kernels write
  // fma() where they mean it, and a*b+c of one expression may contract without the option.
  if (info_.correctly_rounded_divide) options += " -cl-fp32-correctly-rounded-divide-sqrt";
  for (const auto& [name, value] : defines) options += fmt::format(" -D{}={}", name, value);
  return options;
}

std::shared_future<ProgramHandle> Programs::get(std::string_view program, const Defines& defines) {
  std::string source;
  {
    std::lock_guard lock(mutex_);
    auto place = sources_.find(program);
    if (place == sources_.end())
      place = sources_.emplace(std::string(program), final_source(program)).first;
    source = place->second;
  }
  return get_source(program, source, defines);
}

std::shared_future<ProgramHandle> Programs::get_source(std::string_view program,
                                                       const std::string& source,
                                                       const Defines& defines) {
  std::lock_guard lock(mutex_);
  const auto [place, is_new] = programs_.try_emplace({source, options(defines)});
  if (is_new) {
    const auto build_it = [this, name = std::string(program), &key = place->first] {
      return build(name, key.first, key.second);
    };
    place->second = std::async(std::launch::deferred, build_it).share();
  }
  return place->second;
}

ProgramHandle Programs::load(std::string_view program, const std::string& key,
                             const std::string& build_options) {
  const auto binary = cache_.load(key, program);
  if (!binary) return nullptr;
  const Stopwatch clock;
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary->data());
  const size_t length = binary->size();
  cl_int status = CL_SUCCESS;
  ProgramHandle loaded = adopt(
      clCreateProgramWithBinary(context_.get(), 1, &device_, &length, &bytes, nullptr, &status));
  if (status == CL_SUCCESS)
    status = clBuildProgram(loaded.get(), 1, &device_, build_options.c_str(), nullptr, nullptr);
  if (status == CL_SUCCESS) {
    cache_.report(program, fmt::format("loaded in {:.1f} ms", clock.milliseconds()));
    return loaded;
  }
  cache_.report(program, "refused by the driver, " + status_name(status));
  return nullptr;
}

ProgramHandle Programs::build(std::string_view program, const std::string& source,
                              const std::string& build_options) {
  const std::string key = cache_.enabled() ? cache_.key(source, build_options) : "";
  if (cache_.enabled())
    if (ProgramHandle loaded = load(program, key, build_options)) return loaded;

  const Stopwatch clock;
  const char* text = source.data();
  const size_t length = source.size();
  cl_int status = CL_SUCCESS;
  ProgramHandle built =
      adopt(clCreateProgramWithSource(context_.get(), 1, &text, &length, &status));
  check(status, fmt::format("program '{}.cl'", program));
  status = clBuildProgram(built.get(), 1, &device_, build_options.c_str(), nullptr, nullptr);
  if (status != CL_SUCCESS)
    throw Error(fmt::format(
        "building '{}.cl' for device '{}' failed: {} ({})\n  options: {}\n  build log:\n{}",
        program, info_.name, status_name(status), status, build_options,
        build_log(built.get(), device_)));
  if (cache_.enabled()) {
    cache_.report(program, fmt::format("built from source in {:.0f} ms", clock.milliseconds()));
    watch_exit();
    std::lock_guard lock(mutex_);
    // What a probe finds is stored itself: its program is not wanted again.
    if (!program.starts_with("probe_")) unstored_.push_back({built, key, std::string(program)});
  }
  return built;
}

void Programs::store(double seconds) {
  std::vector<Unstored> programs;
  {
    std::lock_guard lock(mutex_);
    programs.swap(unstored_);
  }
  const Stopwatch clock;
  for (const Unstored& entry : programs) {
    if (clock.seconds() > seconds) {
      cache_.report(entry.name, "not stored, left for the next run");
      continue;
    }
    const Stopwatch asking;
    size_t bytes = 0;
    if (clGetProgramInfo(entry.program.get(), CL_PROGRAM_BINARY_SIZES, sizeof(bytes), &bytes,
                         nullptr) != CL_SUCCESS ||
        bytes == 0) {
      cache_.report(entry.name, "not stored, the driver gives no binary");
      continue;
    }
    std::vector<std::byte> binary(bytes);
    auto* data = reinterpret_cast<unsigned char*>(binary.data());
    if (clGetProgramInfo(entry.program.get(), CL_PROGRAM_BINARIES, sizeof(data), &data, nullptr) ==
        CL_SUCCESS) {
      cache_.report(entry.name, fmt::format("binary in {:.0f} ms", asking.milliseconds()));
      cache_.store(entry.key, entry.name, binary);
    }
  }
}

}  // namespace bertcl::opencl
