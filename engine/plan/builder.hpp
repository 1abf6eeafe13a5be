// SPDX-License-Identifier: Apache-2.0
// What the lowering of one op works with: slots, constants, and the list of steps.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/plan.hpp"

namespace bertcl::plan {

struct Options {
  std::string gemm = "own";   // "clblast": CLBlast stands first among the float products
  bool half_weights = false;  // float weights stored in half precision
  bool bf16 = false;          // float products in bf16 where the device multiplies it
  std::string disabled;       // comma-separated implementations that are left out
};

/// The implementations that Options::disabled may name, in alphabetical order.
std::vector<std::string> implementation_names();

class Builder {
 public:
  Builder(Plan& plan, const Options& options) : plan_(plan), options_(options) {}

  opencl::Context& context() { return *plan_.context; }
  Plan& plan() { return plan_; }
  const Options& options() const { return options_; }
  bool is_disabled(const std::string& implementation) const;

  /// An operand: its slot, its constant buffer (uploaded at first use), or null if it is absent.
  Argument in(const ir::Value* value);
  /// A result: a new slot for it.
  Argument out(const ir::Value* value);
  /// A result if anything reads it, otherwise null.
  Argument out_if_used(const ir::Value* value, const ir::Graph& graph);
  /// A slot for a value that only this op knows.
  Argument scratch_out(std::string name, ir::Type type);
  /// Reads what scratch_out() or out() gave.
  static Argument read(const Argument& written);
  /// `result` is `operand` under another shape: no step, the same memory.
  void alias(const ir::Value* result, const ir::Value* operand);
  /// Device memory with these bytes.
  Argument constant(const ir::Tensor& tensor);
  /// Device memory that the caller has filled.
  Argument constant(opencl::Buffer buffer);
  /// The int that kernels set when an index was outside its table.
  Argument error_flag();

  /// Appends a launch. `kernel` must be a clone of its own.
  Step& launch(const ir::Node& node, std::string type, std::string implementation,
               opencl::Kernel kernel, std::vector<Argument> arguments, std::array<Size, 3> global);
  /// Appends a call of a library; `arguments` are its buffers.
  Step& call(const ir::Node& node, std::string type, std::string implementation, LibraryCall call,
             std::vector<Argument> arguments);
  /// A kernel for one step.
  opencl::Kernel kernel(std::string_view program, std::string_view name,
                        const opencl::Defines& defines = {});

  int slot_of(const ir::Value* value) const;
  int add_slot(const ir::Value* value);

  /// Elements that one work-item of an elementwise kernel should take on this device.
  std::int32_t chunk() const;
  /// Rows that one work-item of a row kernel should take.
  std::int32_t rows_per_item() const;

 private:
  Plan& plan_;
  const Options& options_;
  std::map<const ir::Value*, int> slots_;
  // By the address of the constant's bytes, which kept_ keeps from being used again.
  std::map<const void*, int> uploaded_;
  std::vector<ir::Tensor> kept_;
};

/// Lowers one node to steps.
using Lowering = std::function<void(Builder&, const ir::Graph&, const ir::Node&)>;

/// The lowering of an op; null where there is none.
const Lowering* find_lowering(std::string_view op);

/// Makes the plan of a compiled graph. Throws bertcl::Error naming a node that no kernel can run,
/// or a disabled implementation that does not exist.
Plan make_plan(const ir::Graph& graph, std::shared_ptr<opencl::Context> context,
               const Options& options);

}  // namespace bertcl::plan
