// SPDX-License-Identifier: Apache-2.0
// The programs of one context: each built once, cached in memory and on disk.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "opencl/base/handle.hpp"
#include "opencl/device/device.hpp"
#include "opencl/program/build.hpp"
#include "opencl/program/program_cache.hpp"
#include "opencl/program/program_future.hpp"
#include "opencl/program/sources.hpp"

namespace bertcl::opencl {

/// Thread-safe map from (program, defines) to a program, which is built by the thread that first
/// asks its future for it. A future that has not been asked refers to this object.
class Programs {
 public:
  Programs(ContextHandle context, _cl_device_id* device, const DeviceInfo& info);

  std::shared_ptr<ProgramFuture> get(std::string_view program, const Defines& defines);
  std::shared_ptr<ProgramFuture> get_source(std::string_view program, const FinalSource& source,
                                            const Defines& defines);

  /// A program linked from several; named, cached and reported as one.
  std::shared_ptr<ProgramFuture> get_linked(std::string_view name,
                                            const std::vector<LinkedPart>& parts);

  /// A program for a kernel that `program` lacks: the same from source, where that came from the
  /// cache; else null.
  ProgramHandle rebuilt(const ProgramHandle& program);

  /// See Context::store_programs(); `assembly`: also of programs with inline assembly.
  void store(double seconds, bool assembly);

  /// All options of a build, in the order in which they are hashed and given to the compiler.
  std::string options(const Defines& defines) const;

  const ProgramCache& cache() const { return cache_; }

 private:
  struct Unstored {
    ProgramHandle program;
    std::string key;
    std::string name;
    bool assembly;  // in its source
    bool barriers;  // the same
  };
  /// The compiler's input, and the file it comes from.
  struct Text {
    std::string program;
    FinalSource source;
    std::string options;
    auto operator<=>(const Text&) const = default;
  };
  /// A program from the cache.
  struct Loaded {
    std::string name;
    const std::vector<Text>* parts;          // in programs_
    std::shared_ptr<ProgramFuture> rebuilt;  // null before that was asked for
  };
  const FinalSource& source_of(std::string_view program);
  std::shared_ptr<ProgramFuture> get(std::string_view name, std::vector<Text> parts);
  /// A program from the cache, or linked from its parts.
  ProgramHandle build(const std::string& name, const std::vector<Text>& parts);
  ProgramHandle build_from_source(const std::string& name, const std::vector<Text>& parts);
  std::string key_of(const std::vector<Text>& parts) const;
  ProgramHandle create(const Text& text);
  /// Throws Error with options and build log, ProgramBuildError where the driver may find fault
  /// with the program; `program` may be null.
  void check_build(int status, const char* doing, const Text& text, _cl_program* program) const;
  ProgramHandle build_one(const Text& text);
  /// The program itself; of one with comments for sm_90a, the program that has their instructions.
  ProgramHandle with_sm_90a(const Text& text, ProgramHandle program);
  ProgramHandle link(const std::string& name, const std::vector<Text>& parts);
  ProgramHandle compile_and_link(const std::string& name, const std::vector<Text>& parts);
  ProgramHandle load(std::string_view program, const std::string& key, const std::string& options);

  ContextHandle context_;
  _cl_device_id* device_;
  DeviceInfo info_;
  ProgramCache cache_;
  std::mutex mutex_;
  // A future, so that two threads never build the same program.
  std::map<std::vector<Text>, std::shared_ptr<ProgramFuture>> programs_;
  std::map<std::string, FinalSource, std::less<>> sources_;  // by program
  std::map<ProgramHandle, Loaded> loaded_;
  std::vector<Unstored> unstored_;  // built from source, binary not yet on disk
};

}  // namespace bertcl::opencl
