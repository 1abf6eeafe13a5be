// SPDX-License-Identifier: Apache-2.0
// Compilation of programs with their options, errors and binaries.
#include "opencl/program/programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "bertcl/error.hpp"
#include "opencl/base/cl.hpp"
#include "opencl/base/exit_guard.hpp"
#include "opencl/base/status.hpp"
#include "opencl/program/binary.hpp"
#include "opencl/program/ptx.hpp"
#include "support/stopwatch.hpp"

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

#if defined(__aarch64__)
constexpr bool kArm64 = true;
#else
constexpr bool kArm64 = false;
#endif

/// Debian's PoCL compiles its built-in functions for Arm with target features that it does not give
/// to kernels, and LLVM inlines only into functions that have them: each vload8() is a call. The
/// attribute inlines all the same.
FinalSource with_inlining(FinalSource source, const DeviceInfo& device) {
  if (kArm64 && device.platform == "Portable Computing Language")
    source.text =
        "#pragma clang attribute push(__attribute__((flatten)), apply_to = function)\n#line 1\n" +
        std::move(source.text) + "\n#pragma clang attribute pop\n";
  return source;
}

}  // namespace

ProgramHandle Programs::create(const Text& text) {
  const char* source = text.source.text.data();
  const size_t length = text.source.text.size();
  cl_int status = CL_SUCCESS;
  ProgramHandle program =
      adopt(clCreateProgramWithSource(context_.get(), 1, &source, &length, &status));
  check(status, fmt::format("program '{}.cl'", text.program));
  return program;
}

void Programs::check_build(int status, const char* doing, const Text& text,
                           _cl_program* program) const {
  if (status == CL_SUCCESS) return;
  const std::string message =
      fmt::format("{} '{}.cl' for device '{}' failed: {} ({})\n  options: {}\n  build log:\n{}",
                  doing, text.program, info_.name, status_name(status), status, text.options,
                  program ? build_log(program, device_) : "(none)");
  if (status == CL_OUT_OF_HOST_MEMORY) throw Error(message, error_code(status));
  throw ProgramBuildError(message, error_code(status));
}

Programs::Programs(ContextHandle context, _cl_device_id* device, const DeviceInfo& info)
    : context_(std::move(context)), device_(device), info_(info), cache_(info) {}

std::string Programs::options(const Defines& defines) const {
  // Kernels are written in OpenCL C 1.2, which every device compiles; built-in functions of
  // sub-groups and integer dot products exist only in the newer language.
  const bool newer = info_.has_subgroups || info_.has_extension("cl_khr_integer_dot_product");
  const auto has = [&](const char* version) { return newer && info_.version.starts_with(version); };
  std::string options = has("OpenCL 3.")   ? "-cl-std=CL3.0"
                        : has("OpenCL 2.") ? "-cl-std=CL2.0"
                                           : "-cl-std=CL1.2";
  // Quantization divides by a scale and rounds half to even: a division that is off by one unit in
  // the last place moves ties. So neither -cl-fast-relaxed-math nor -cl-mad-enable: kernels write
  // fma() where they mean it, and a*b+c of one expression may contract without the option.
  if (info_.correctly_rounded_divide) options += " -cl-fp32-correctly-rounded-divide-sqrt";
  // PoCL prints how many warnings there were. They are looked for where each kernel is compiled
  // alone (tests/layout/check_kernels).
  options += " -w";
  if (info_.min_subgroup_width > 0)
    options += fmt::format(" -DNARROW_SUBGROUPS={}", info_.min_subgroup_width);
  for (const auto& [name, value] : defines) options += fmt::format(" -D{}={}", name, value);
  return options;
}

const FinalSource& Programs::source_of(std::string_view program) {
  std::lock_guard lock(mutex_);
  auto place = sources_.find(program);
  if (place == sources_.end())
    place =
        sources_.emplace(std::string(program), with_inlining(final_source(program), info_)).first;
  return place->second;
}

std::shared_ptr<ProgramFuture> Programs::get(std::string_view program, const Defines& defines) {
  return get(program, {{std::string(program), source_of(program), options(defines)}});
}

std::shared_ptr<ProgramFuture> Programs::get_source(std::string_view program,
                                                    const FinalSource& source,
                                                    const Defines& defines) {
  return get(program, {{std::string(program), source, options(defines)}});
}

std::shared_ptr<ProgramFuture> Programs::get_linked(std::string_view name,
                                                    const std::vector<LinkedPart>& parts) {
  std::vector<Text> texts;
  for (const LinkedPart& part : parts)
    texts.push_back(
        {part.program, source_of(part.program), options(part.defines) + part.more_options});
  return get(name, std::move(texts));
}

std::shared_ptr<ProgramFuture> Programs::get(std::string_view name, std::vector<Text> parts) {
  std::lock_guard lock(mutex_);
  const auto [place, is_new] = programs_.try_emplace(std::move(parts));
  if (is_new) {
    const auto build_it = [this, name = std::string(name), &texts = place->first] {
      return build(name, texts);
    };
    place->second = std::make_shared<ProgramFuture>(build_it);
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
  cache_.report(program, "rejected by the driver, " + status_name(status));
  return nullptr;
}

std::string Programs::key_of(const std::vector<Text>& parts) const {
  std::string source = parts.front().source.text, options = parts.front().options;
  for (const Text& part : std::span(parts).subspan(1)) {
    // For the key alone: separates the parts, and is not compiled.
    source += fmt::format("\n// part, {} bytes\n{}", part.source.text.size(), part.source.text);
    options += "; " + part.options;
  }
  return cache_.key(source, options);
}

ProgramHandle Programs::build(const std::string& name, const std::vector<Text>& parts) {
  if (cache_.enabled())
    if (ProgramHandle loaded = load(name, key_of(parts), parts.front().options)) {
      std::lock_guard lock(mutex_);
      loaded_[loaded] = {name, &parts, {}};
      return loaded;
    }
  return build_from_source(name, parts);
}

ProgramHandle Programs::rebuilt(const ProgramHandle& program) {
  std::shared_ptr<ProgramFuture> rebuilt;
  {
    std::lock_guard lock(mutex_);
    const auto found = loaded_.find(program);
    if (found == loaded_.end()) return nullptr;
    Loaded& loaded = found->second;
    const auto build_it = [this, &loaded] {
      cache_.report(loaded.name, "its binary lacks a kernel");
      return build_from_source(loaded.name, *loaded.parts);
    };
    if (!loaded.rebuilt) loaded.rebuilt = std::make_shared<ProgramFuture>(build_it);
    rebuilt = loaded.rebuilt;
  }
  return rebuilt->get();
}

ProgramHandle Programs::build_from_source(const std::string& name, const std::vector<Text>& parts) {
  const Stopwatch clock;
  ProgramHandle built = parts.size() == 1 ? build_one(parts.front()) : link(name, parts);
  if (cache_.enabled()) {
    cache_.report(name, fmt::format("built from source in {:.0f} ms", clock.milliseconds()));
    watch_exit();
    std::lock_guard lock(mutex_);
    const auto any_has = [&](bool SourceTraits::*trait) {
      return std::ranges::any_of(parts,
                                 [&](const Text& part) { return part.source.traits.*trait; });
    };
    unstored_.push_back({built, key_of(parts), name, any_has(&SourceTraits::has_assembly),
                         any_has(&SourceTraits::has_barriers)});
  }
  return built;
}

ProgramHandle Programs::build_one(const Text& text) {
  ProgramHandle program = create(text);
  check_build(clBuildProgram(program.get(), 1, &device_, text.options.c_str(), nullptr, nullptr),
              "building", text, program.get());
  const bool may_have_comments = info_.has_nvidia_driver() && text.source.traits.has_sm_90a;
  return may_have_comments ? with_sm_90a(text, std::move(program)) : program;
}

// NVIDIA's driver gives the PTX of a program as its binary, and assembles PTX that it is given.
ProgramHandle Programs::with_sm_90a(const Text& text, ProgramHandle program) {
  std::string ptx = binary_of(program.get(), device_);
  if (ptx.empty())  // without it the sums of wgmma stay 0
    throw Error(fmt::format("the driver of '{}' gave no PTX of '{}.cl'", info_.name, text.program),
                ErrorCode::device);
  if (ptx.find(kSm90aComment) == std::string::npos) return program;
  ptx = ptx_for_sm_90a(std::move(ptx));
  const auto* bytes = reinterpret_cast<const unsigned char*>(ptx.data());
  const size_t length = ptx.size();
  cl_int status = CL_SUCCESS;
  ProgramHandle assembled = adopt(
      clCreateProgramWithBinary(context_.get(), 1, &device_, &length, &bytes, nullptr, &status));
  check(status, fmt::format("PTX of '{}.cl' for sm_90a", text.program));
  check_build(clBuildProgram(assembled.get(), 1, &device_, text.options.c_str(), nullptr, nullptr),
              "assembling, for sm_90a,", text, assembled.get());
  return assembled;
}

// Twice: of many processes that start at once, PoCL 3.1 has refused to link in one.
ProgramHandle Programs::link(const std::string& name, const std::vector<Text>& parts) {
  try {
    return compile_and_link(name, parts);
  } catch (const Error& error) {
    const std::string message = error.what();
    cache_.report(name, "linked once more after: " + message.substr(0, message.find('\n')));
    return compile_and_link(name, parts);
  }
}

ProgramHandle Programs::compile_and_link(const std::string& name, const std::vector<Text>& parts) {
  std::vector<ProgramHandle> compiled;
  std::vector<cl_program> inputs;
  for (const Text& part : parts) {
    compiled.push_back(create(part));
    inputs.push_back(compiled.back().get());
    check_build(clCompileProgram(inputs.back(), 1, &device_, part.options.c_str(), 0, nullptr,
                                 nullptr, nullptr, nullptr),
                fmt::format("compiling, as a part of '{}',", name).c_str(), part, inputs.back());
  }
  cl_int status = CL_SUCCESS;
  ProgramHandle linked =
      adopt(clLinkProgram(context_.get(), 1, &device_, nullptr, static_cast<cl_uint>(inputs.size()),
                          inputs.data(), nullptr, nullptr, &status));
  check_build(status, "linking", parts.front(), linked.get());
  return linked;
}

void Programs::store(double seconds, bool assembly) {
  std::vector<Unstored> programs;
  {
    std::lock_guard lock(mutex_);
    programs.swap(unstored_);
  }
  const Stopwatch clock;
  for (const Unstored& entry : programs) {
    if (entry.assembly && !assembly) {
      cache_.report(entry.name, "not stored, capability assembly_binaries is missing");
      continue;
    }
    // For a binary PoCL compiles each kernel for work-groups of any size: one with barriers takes
    // seconds (gemm_s8_dot4: 4.1 s on two cores of an AMD EPYC, PoCL 3.1, 2026-11-26).
    if (entry.barriers && info_.platform == "Portable Computing Language") {
      cache_.report(entry.name, "not stored, its binary for any work-group would take seconds");
      continue;
    }
    if (clock.seconds() > seconds) {
      cache_.report(entry.name, "not stored, left for the next run");
      continue;
    }
    const Stopwatch asking;
    const std::string binary = binary_of(entry.program.get(), device_);
    if (binary.empty()) {
      cache_.report(entry.name, "not stored, the driver returned no binary");
      continue;
    }
    cache_.report(entry.name, fmt::format("binary in {:.0f} ms", asking.milliseconds()));
    cache_.store(entry.key, entry.name, std::as_bytes(std::span(binary)));
  }
}

}  // namespace bertcl::opencl
