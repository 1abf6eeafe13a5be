// SPDX-License-Identifier: Apache-2.0
// The programs of a plan: collected from all nodes first, then built.
#pragma once
#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "plan/plan.hpp"
#include "plan/target.hpp"

namespace bertcl::plan {

/// A variant whose kernel the driver does not build, not for work-groups of its size, or does not
/// launch.
class VariantUnsupported : public Error {
 public:
  VariantUnsupported(const Step& step, const std::string& reason, const Error& error)
      : Error(error), variant(step.op, step.variant), reason(reason) {}
  std::pair<std::string, std::string> variant;  // as in Options::refused
  std::string reason;
};

/// Where a device other than a CPU refuses a kernel, its alternatives leave the plan, and
/// VariantUnsupported is thrown for that of a step.
class Programs {
 public:
  explicit Programs(Plan& plan) : plan_(plan) {}

  /// A kernel of a program that is built later; errors name `node`.
  opencl::Kernel kernel(std::string_view program, std::string_view name,
                        const opencl::Defines& defines, const ir::Node* node);
  /// The kernel makes constants: its program is built before the others.
  void mark_prepacking(const opencl::Kernel& kernel);
  /// Gives the plan a persistent kernel over `kernels`, for the steps that have a number in it, and
  /// leaves their own programs to the first launch that needs one. If the driver cannot build it,
  /// the plan has none, and every step its own program.
  void merge(std::span<const opencl::Kernel> kernels);

  void build_prepacking(const Target& target) { build(Use::prepacking, target); }
  /// Builds the rest, and checks that the kernels run in groups of their sizes.
  void build_others(const Target& target);

 private:
  enum class Use { steps, prepacking, merged_steps };
  using Key = std::pair<std::string, opencl::Defines>;
  struct Program {
    opencl::Kernel kernel;  // the first that was asked for
    const ir::Node* node;   // that did; null: of the persistent kernel
    Use use = Use::steps;
  };

  static Key key_of(const opencl::Kernel& kernel) {
    return {kernel.program_name(), kernel.defines()};
  }
  void build(Use use, const Target& target);
  /// True if it was that of alternatives, which are dropped.
  bool refuse(opencl::Kernel kernel, const std::string& reason, const Error& error);
  void check_group_sizes(const Target& target);
  void give_up_persistent_kernel(const std::string& reason);

  Plan& plan_;
  std::vector<Program> programs_;
  std::set<Key> known_;  // of programs_
  std::size_t built_ = 0;
};

}  // namespace bertcl::plan
