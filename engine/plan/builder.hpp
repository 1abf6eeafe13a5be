// SPDX-License-Identifier: Apache-2.0
// The context for lowering one op: slots, constants, and the list of steps.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "kernels/contracts.hpp"
#include "kernels/contracts/gemm.hpp"
#include "plan/plan.hpp"
#include "plan/target.hpp"
#include "plan/tuning.hpp"
#include "plan/weight_check.hpp"

namespace bertcl::plan {

struct Options {
  /// Float GEMMs: "own", "clblast", or "auto": own, unless tuning found CLBlast to be faster.
  std::string gemm = "auto";
  /// Weights may hold NaN and infinity (weight_check.hpp), else an error. Unset: they may not, and
  /// the error does not name the option, as the caller has none.
  std::optional<bool> allow_nonfinite;
  bool merge_launches = true;  // steps in few launches, where the device can
  std::string disabled;        // comma-separated variants that are left out
  /// Null: what is stored for the device.
  std::shared_ptr<const Tuning> tuning;
  /// "OP:VARIANT" -> why its kernel does not run on the device, as an earlier attempt at the plan
  /// has found: see make_plan().
  std::map<std::string, std::string, std::less<>> refused;
  /// On devices other than CPUs: launches the kernels of a finished plan, and takes alternatives
  /// that the driver does not launch from it. Throws VariantUnsupported for the kernel of a step.
  std::function<void(Plan&)> try_launches;
  /// Called before each program is built or loaded, with the number done and the total.
  std::function<void(std::size_t built, std::size_t programs)> on_program;

  bool is_disabled(std::string_view variant) const;
  /// The reason in `refused`; none: "".
  std::string why_refused(std::string_view op, std::string_view variant) const;
};

/// A variant whose kernel the driver does not build, not for work-groups of its size, or does not
/// launch.
class VariantUnsupported : public Error {
 public:
  VariantUnsupported(const Step& step, const std::string& reason, const Error& error)
      : Error(error), variant(step.op + ":" + step.variant), reason(reason) {}
  std::string variant, reason;
};

/// The variants that Options::disabled may name, in alphabetical order.
std::vector<std::string> disableable_variants();

/// Throws bertcl::Error for a name in Options::disabled that is none of them.
void check_disabled(const std::string& disabled);

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
  /// Device memory with these bytes.
  Argument constant(const ir::Tensor& tensor);
  /// Device memory filled by the caller.
  Argument constant(opencl::Buffer buffer);
  /// The same bytes for a kernel that loads them by element or by vloadn(): see
  /// opencl::Context::wrap_host_memory().
  Argument constant_in_place(const ir::Tensor& tensor);
  /// A kernel that makes constants of a tensor, as one that prepacks weights, to be run by finish()
  /// with one work-item for each of `count`. Its first argument is that tensor, as by
  /// constant_in_place().
  void make_constant(opencl::Kernel kernel, const ir::Tensor& tensor, std::size_t count);
  /// Throws Error if a step gives a kernel another element type than it reads (contracts.hpp).
  void check_contracts() const;
  /// Builds all programs except those of steps that the persistent kernel runs, and makes those
  /// constants. Throws Error if a built kernel takes another number of arguments than its step has.
  void finish();
  /// The int that kernels set when an index was outside its table.
  Argument error_flag();

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
  /// Memory for the sums of gemm_s8_partial, which one step writes and the next reads.
  Argument partial_sums();
  /// Defers the reduction of a GEMM to the lowering of the next node, which must take it.
  void defer(PartialGemm gemm) { partial_ = std::move(gemm); }
  /// The GEMM whose result `value` is and whose reduction was deferred; it is deferred no longer.
  std::optional<PartialGemm> take_partial(const ir::Value* value) {
    if (!partial_ || partial_->result != value) return std::nullopt;
    return std::exchange(partial_, std::nullopt);
  }
  /// Makes finish() look for NaN and infinity in the arguments of constant(), constant_in_place()
  /// and make_constant() from now on. `weights` must outlive it.
  void check_weights(WeightCheck& weights) { weights_ = &weights; }
  /// Sets the node being lowered.
  void set_node(const ir::Node& node) { node_ = &node; }
  /// A kernel for one step, built by finish().
  opencl::Kernel kernel(std::string_view program, std::string_view name,
                        const opencl::Defines& defines = {});

  /// Gives the plan a persistent kernel over `kernels`, for the steps that have a number in it;
  /// finish() builds it, and leaves their own programs to the first launch that needs one. If the
  /// driver cannot build it, the plan has none, and every step its own program.
  void merge(std::span<const opencl::Kernel> kernels);

  int slot_of(const ir::Value* value) const;
  int add_slot(const ir::Value* value);

  /// Elements that one work-item of an elementwise kernel should take on this device.
  std::int32_t chunk() const;
  /// The same of kernels that take vectors of 16.
  std::int32_t vector_chunk() const;
  /// Rows that one work-item of a row kernel should take.
  std::int32_t rows_per_item() const;

 private:
  Plan& plan_;
  const Options& options_;
  std::shared_ptr<const Tuning> tuning_;
  std::map<const ir::Value*, int> slots_;
  // By the address of the constant's bytes, which kept_ keeps alive, their number and type:
  // external data of a file may overlap.
  std::map<std::tuple<const std::byte*, std::size_t, ir::DType>, int> uploaded_;
  std::vector<ir::Tensor> kept_;
  std::map<int, ir::DType> constant_types_;  // of constants that are not prepacked weights
  const ir::Node* node_ = nullptr;
  /// A program by its first requested kernel, and the requesting node; none for the persistent
  /// kernel.
  struct Wanted {
    opencl::Kernel kernel;
    const ir::Node* node;
  };
  std::vector<Wanted> wanted_;
  std::vector<Wanted> merged_;  // programs of steps that the persistent kernel runs
  std::set<std::pair<std::string, opencl::Defines>> known_;  // programs in wanted_
  std::optional<PartialGemm> partial_;
  std::size_t built_ = 0;                                      // of them
  std::set<std::pair<std::string, opencl::Defines>> refused_;  // of alternatives that were dropped
  struct Prepacking {
    opencl::Kernel kernel;
    ir::Tensor tensor;
    std::size_t count;
    const ir::Node* node;
  };
  std::vector<Prepacking> prepackings_;
  struct Unchecked {
    int constant;
    ir::Tensor tensor;
    bool is_weight;
    const ir::Node* node;
  };
  std::vector<Unchecked> unchecked_;
  WeightCheck* weights_ = nullptr;

  Argument constant(opencl::Buffer buffer, const ir::Tensor& tensor, bool is_weight);
  void queue_checks();
  void check(const opencl::Buffer& data, const ir::Tensor& tensor, bool is_weight,
             const ir::Node* node);
  void build(std::span<const Wanted> programs);
  /// On devices other than CPUs: takes a kernel that cannot run there from the plan if it is an
  /// alternative of a step, and throws VariantUnsupported if it is the step's own. Does nothing if
  /// no step has it.
  void refuse(opencl::Kernel kernel, const std::string& reason, const Error& error);
  bool is_refused(const opencl::Kernel& kernel) const;
  void check_group_sizes();
  void give_up_persistent_kernel(const std::string& reason);
  /// Those that are still queued.
  std::span<Prepacking> queue_prepackings();
  /// Waits, and releases what they hold.
  void wait_for(std::span<Prepacking> queued);
};

/// Lowers one node to steps.
using Lowering = std::function<void(Builder&, const ir::Graph&, const ir::Node&)>;

/// The lowering of an op; null if there is none.
const Lowering* find_lowering(std::string_view op);

/// Makes the plan of a compiled graph. Where a GPU's driver refuses a kernel, the next variant is
/// taken, with that as the reason. Throws bertcl::Error naming a node that no kernel can run,
/// or a disabled variant that does not exist.
Plan make_plan(const ir::Graph& graph, std::shared_ptr<opencl::Context> context,
               const Options& options);

}  // namespace bertcl::plan
