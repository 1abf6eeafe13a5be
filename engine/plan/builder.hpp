// SPDX-License-Identifier: Apache-2.0
// What the lowering of an op sees: it names operands, and appends steps.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/contracts.hpp"
#include "kernels/contracts/gemm.hpp"
#include "plan/constants.hpp"
#include "plan/options.hpp"
#include "plan/plan.hpp"
#include "plan/programs.hpp"
#include "plan/target.hpp"

namespace bertcl::plan {

/// A split-K GEMM whose partial sums lie in memory until a later step adds them.
struct PartialGemm {
  const ir::Value* result = nullptr;
  kernels::GemmS8Reduce<Argument> arguments;
  std::int64_t up_to_rows = 0;  // with split-K
  ir::Dim rows{0};
  std::function<void()> reduce;  // appends gemm_s8_reduce, the step that writes `result`
};

class Builder {
 public:
  Builder(Plan& plan, const Options& options);

  opencl::Context& context() { return *plan_.context; }
  Plan& plan() { return plan_; }
  const Options& options() const { return options_; }
  const Tuning& tuning() const { return *tuning_; }
  Target target() const { return {*plan_.context, options_, *tuning_}; }
  bool is_disabled(std::string_view variant) const { return options_.is_disabled(variant); }
  // What a work-item should take on this device: see Target.
  std::int32_t chunk() const { return target().chunk(); }
  std::int32_t vector_chunk() const { return target().vector_chunk(); }
  std::int32_t rows_per_item() const { return target().rows_per_item(); }

  // Operands and results.

  /// An operand: its slot, its constant buffer (uploaded at first use), or null if it is absent.
  Argument in(const ir::Value* value);
  /// A result: a new slot for it.
  Argument out(const ir::Value* value);
  /// A result if anything reads it, otherwise null.
  Argument out_if_used(const ir::Value* value, const ir::Graph& graph);
  /// A slot for a value that only this op uses.
  Argument scratch_out(std::string name, ir::Type type);
  /// Reads a result of scratch_out() or out().
  static Argument read(const Argument& written);
  /// `result` is `operand` with another shape: no step, the same memory.
  void alias(const ir::Value* result, const ir::Value* operand);
  /// The step needs `size` to be at most `limit`: each run checks it.
  void limit(const ir::Dim& size, const ir::Dim& limit) {
    const bool are_numbers = size.is_constant() && limit.is_constant();
    if (are_numbers ? size > limit : size != limit) plan_.at_most.emplace(size, limit);
  }
  int slot_of(const ir::Value* value) const;
  int add_slot(const ir::Value* value);

  // Constants.

  /// Device memory with these bytes.
  Argument constant(const ir::Tensor& tensor) { return constants_.constant(tensor, node_); }
  /// Device memory filled by the caller.
  Argument constant(opencl::Buffer buffer) { return constants_.constant(std::move(buffer)); }
  /// The same bytes for a kernel that loads them by element or by vloadn(): see
  /// opencl::Context::wrap_host_memory().
  Argument constant_in_place(const ir::Tensor& tensor) {
    return constants_.constant_in_place(tensor, node_);
  }
  /// A kernel that makes constants of a tensor, as one that prepacks weights, to be run by finish()
  /// with one work-item for each of `count`. Its first argument is that tensor, as by
  /// constant_in_place().
  void make_constant(opencl::Kernel kernel, const ir::Tensor& tensor, std::size_t count) {
    programs_.mark_prepacking(kernel);
    constants_.make_constant(std::move(kernel), tensor, count, node_);
  }
  /// The int that kernels set when an index was outside its table.
  Argument error_flag() { return constants_.error_flag(); }
  /// Memory for the sums of gemm_s8_partial, which one step writes and the next reads.
  Argument partial_sums() { return constants_.partial_sums(); }

  // Steps.

  /// A kernel for one step, built by finish().
  opencl::Kernel kernel(std::string_view program, std::string_view name,
                        const opencl::Defines& defines = {}) {
    return programs_.kernel(program, name, defines, node_);
  }
  /// Appends a launch of a kernel with this contract. `kernel` must belong to this step only.
  template <template <class> class Contract>
  Step& launch(const ir::Node& node, Arithmetic type, std::string variant, opencl::Kernel kernel,
               const Contract<Argument>& arguments, std::array<SizeExpr, 3> global) {
    kernels::check_kernel(kernel.name(), kernels::parameters_of<Contract>.data());
    return launch(node, type, std::move(variant), std::move(kernel), kernels::in_order(arguments),
                  std::move(global));
  }
  /// The same with arguments in the kernel's order, for a contract that the caller has checked.
  Step& launch(const ir::Node& node, Arithmetic type, std::string variant, opencl::Kernel kernel,
               std::vector<Argument> arguments, std::array<SizeExpr, 3> global);
  /// Appends a call of a library.
  Step& call(const ir::Node& node, Arithmetic type, std::string variant, LibraryCall call,
             const kernels::LibraryGemm<Argument>& arguments);
  /// Defers the reduction of a GEMM to the lowering of the next node, which must take it.
  void defer(PartialGemm gemm) { partial_ = std::move(gemm); }
  /// The GEMM whose result `value` is and whose reduction was deferred; it is deferred no longer.
  std::optional<PartialGemm> take_partial(const ir::Value* value) {
    if (!partial_ || partial_->result != value) return std::nullopt;
    return std::exchange(partial_, std::nullopt);
  }

  // For make_plan(), around the lowerings.

  /// Makes finish() look for NaN and infinity in the constants from now on. `weights` must outlive
  /// it.
  void check_weights(WeightCheck& weights) { constants_.check_weights(weights); }
  /// Sets the node being lowered.
  void set_node(const ir::Node& node) { node_ = &node; }
  /// Throws Error if a step gives a kernel another element type than it reads (contracts.hpp).
  void check_contracts() const;
  /// See Programs::merge().
  void merge(std::span<const opencl::Kernel> kernels) { programs_.merge(kernels); }
  /// Builds all programs except those of steps that the persistent kernel runs, and makes the
  /// constants. Throws Error if a built kernel takes another number of arguments than its step has.
  void finish();

 private:
  Step& add_step(const ir::Node& node, Arithmetic type, std::string variant,
                 std::vector<Argument> arguments);

  Plan& plan_;
  const Options& options_;
  std::shared_ptr<const Tuning> tuning_;
  Constants constants_;
  Programs programs_;
  std::map<const ir::Value*, int> slots_;
  const ir::Node* node_ = nullptr;
  std::optional<PartialGemm> partial_;
};

/// Lowers one node to steps.
using Lowering = std::function<void(Builder&, const ir::Graph&, const ir::Node&)>;

/// The lowering of an op; null if there is none.
const Lowering* find_lowering(std::string_view op);

/// Adds the steps of a compiled graph to the plan of `builder`; Builder::finish() builds their
/// programs. Throws as make_plan().
void lower(Builder& builder, const ir::Graph& graph);

/// Makes the plan of a compiled graph. Where a GPU's driver refuses a kernel, the next variant is
/// taken, with that as the reason. Throws bertcl::Error naming a node that no kernel can run,
/// or a disabled variant that does not exist.
Plan make_plan(const ir::Graph& graph, std::shared_ptr<opencl::Context> context,
               const Options& options);

}  // namespace bertcl::plan
