// SPDX-License-Identifier: Apache-2.0
// What the caller of the planner asks for.
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/plan.hpp"
#include "plan/tuning.hpp"

namespace bertcl::plan {

/// Which library runs float GEMMs; `automatic`: bertcl's own, unless tuning found CLBlast to be
/// faster.
enum class GemmLibrary { automatic, own, clblast };

/// "auto", "own" or "clblast". Throws bertcl::Error for another name.
GemmLibrary gemm_library_named(std::string_view name);

struct Options {
  GemmLibrary gemm = GemmLibrary::automatic;
  /// Weights may hold NaN and infinity (weight_check.hpp), else an error. Unset: they may not, and
  /// the error does not name the option, as the caller has none.
  std::optional<bool> allow_nonfinite;
  bool merge_launches = true;                   // steps in few launches, where the device can
  std::set<std::string, std::less<>> disabled;  // as variants_to_disable() gives them
  /// Null: what is stored for the device.
  std::shared_ptr<const Tuning> tuning;
  /// Op and variant -> why its kernel does not run on the device, as an earlier attempt at the plan
  /// has found: see make_plan().
  std::map<std::pair<std::string, std::string>, std::string> refused;
  /// On devices other than CPUs: launches the kernels of a finished plan, and takes alternatives
  /// that the driver does not launch from it. Throws VariantUnsupported for the kernel of a step.
  std::function<void(Plan&)> try_launches;
  /// Called before each program is built or loaded, with the number done and the total.
  std::function<void(std::size_t built, std::size_t programs)> on_program;

  bool is_disabled(std::string_view variant) const { return disabled.contains(variant); }
  /// The reason in `refused`; none: "".
  std::string why_refused(std::string_view op, std::string_view variant) const;
  bool is_refused(std::string_view op, std::string_view variant) const {
    return !why_refused(op, variant).empty();
  }
};

/// The variants that Options::disabled may name, in alphabetical order.
std::vector<std::string> disableable_variants();

/// Those of a comma-separated list. Throws bertcl::Error for a name that is none of them.
std::set<std::string, std::less<>> variants_to_disable(const std::string& list);

}  // namespace bertcl::plan
