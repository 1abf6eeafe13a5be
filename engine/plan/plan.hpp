// SPDX-License-Identifier: Apache-2.0
// The compiled form of a model on one device: a fixed list of kernel launches.
//
// A plan is made once per model and device. Batch, sequence length and number of tokens are symbols
// in it; a run binds them, places the slots in one arena and enqueues the steps without waiting.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ir/graph.hpp"
#include "ir/port.hpp"
#include "opencl/context.hpp"
#include "opencl/kernel.hpp"
#include "plan/arithmetic.hpp"
#include "support/ceil_div.hpp"

namespace bertcl::plan {

/// ceil(dim / divide) * times - minus: a size that is known at run time, over the symbols of the
/// model's inputs and those of packing (ops/symbols.hpp).
struct SizeExpr {
  ir::Dim dim{1};
  ir::Dim divide{1};
  std::int64_t times = 1;  // work-items of a group, where it counts groups
  ir::Dim minus{0};        // of a place, from the end

  std::int64_t evaluate(const ir::Bindings& bindings) const {
    const std::int64_t by = divide.evaluate(bindings);
    return ceil_div(dim.evaluate(bindings), by) * times - minus.evaluate(bindings);
  }
};

/// Device memory of one value. Slots with the same root share memory (Reshape and its like).
struct Slot {
  std::string name;
  ir::Type type;
  int root = 0;  // index of the slot that owns the memory, itself in most cases
};

// The kinds of kernel arguments.
struct Reads {
  int slot;
};
struct Writes {
  int slot;
};
/// A buffer that does not change between runs: weights, scales.
struct Constant {
  int index;
};
/// Extents and strides for a strided kernel, as int32 in device memory.
struct SizeTable {
  std::vector<SizeExpr> values;
};
using Argument =
    std::variant<std::nullptr_t, Reads, Writes, Constant, SizeTable, SizeExpr, std::int32_t, float>;

/// Enqueues the work of a library instead of a kernel. `buffers` are those of the step's arguments
/// in their order.
using LibraryCall =
    std::function<void(std::span<opencl::Buffer* const> buffers, const ir::Bindings& sizes)>;

/// A kernel and its grid.
struct StepKernel {
  std::string variant;  // x86_vnni, portable, ...
  opencl::Kernel kernel;
  std::array<SizeExpr, 3> global;
  std::array<std::size_t, 3> local{1, 1, 1};
  /// Of the kernel in Plan::persistent_kernel; -1: only in a launch of its own.
  int persistent_index = -1;
};

/// Another kernel on the buffers of a step, for runs of some sizes.
struct Alternative : StepKernel {
  /// 0: where the next alternative, or after the last one the step itself, leaves units idle.
  std::int64_t up_to_rows = 0;
};

/// A variant for tuning; variants of one layout read the same weights.
struct TunableVariant {
  std::string name, layout;
  std::string variant;      // whose tiles it changes, or itself
  std::string options_of;   // the one of the same tile without its options; "": it has none
  std::int32_t splits = 1;  // of K
};

/// Tuning data of a GEMM with constant weights [k, n].
struct TunableGemm {
  std::int64_t n = 0, k = 0;
  std::vector<TunableVariant> variants;
  std::string default_variant;  // the variant without tuning, or kPredictedTiles
  double gain = 0;              // measured speedup over `default_variant`; 0 where that is taken
  /// The architecture for which tiles by rows were predicted, not measured; "": they were not.
  std::string predicted_for = "";
};

/// One kernel launch, possibly merged with its neighbours, or one library call, which has no
/// kernel.
struct Step : StepKernel {
  std::string name;                  // of the value that it makes
  std::string op;                    // of the graph: linear_q, attention, ...
  Arithmetic type;                   // int8, fp32, ...
  std::string why_not_faster;        // reasons of the variants before it, or of a float fallback
  std::vector<std::string> sources;  // ONNX nodes that it stands for
  LibraryCall call;                  // set: the step has no kernel
  std::vector<Argument> arguments;
  std::vector<Alternative> alternatives;  // the first that fits a run is taken, else the kernel
  /// Runs only if above_rows < work_units <= up_to_rows; else other steps do its work.
  std::int64_t above_rows = -1, up_to_rows = std::numeric_limits<std::int64_t>::max();
  std::optional<TunableGemm> tunable;
  std::int32_t splits = 1;           // of K: it makes the partial sums of that many parts
  double operations_per_unit = 0;    // arithmetic operations = this * work_units
  double partial_sums_per_unit = 0;  // bytes of Plan::partial_sums, likewise
  ir::Dim work_units{0};
};

/// The source of a slot's bytes before the first step.
enum class InputKind { dense, packed_ids, packed_token_types, positions, seq_offsets, key_mask };
struct Input {
  InputKind kind = InputKind::dense;
  /// The model input it is made from; empty for offsets and mask_is_length positions.
  std::string source;
  int slot = 0;
};
struct Output {
  std::string name;
  int slot = 0;  // -1 where the output is a constant
  ir::Tensor constant;
  int packed_slot = -1;    // its rows [tokens, ...] before they were unpacked, if it is made so
  bool of_tokens = false;  // its second axis is that of the inputs [batch, seq]
};

/// A value observed by calibration: read after step `after`.
struct TapPoint {
  std::string name;
  int slot = 0;
  int after = 0;
};

struct Plan {
  std::shared_ptr<opencl::Context> context;
  std::vector<ir::Port> model_inputs, model_outputs;
  std::vector<Slot> slots;
  std::vector<opencl::Buffer> constants;
  std::vector<Step> steps;
  /// Runs steps in one launch (opencl/launch/persistent_kernel.hpp); none on most devices.
  opencl::Kernel persistent_kernel;
  std::vector<std::uint64_t> constant_addresses;  // for it, of each of the constants
  /// Where the device runs kernels in this process, but has none.
  std::string why_no_persistent_kernel;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<TapPoint> taps;
  /// What the operators need and no shape says.
  std::vector<std::pair<ir::Dim, ir::Dim>> equal_sizes;
  /// They also need the first size of each pair to be at most the second.
  std::set<std::pair<ir::Dim, ir::Dim>> at_most;
  /// [batch, seq] of packed rows where no input tells them; else empty.
  ir::Shape packed_rows;
  std::string mask_input;       // model input that masks keys; empty if the model has none
  bool mask_is_length = false;  // as many first keys count as the mask has ones
  std::string padding_reader;   // operator that needs rows of padding to be computed; else empty
  std::int64_t attention_heads = 0;
  std::vector<std::int64_t> compared_pad_ids;  // by which the model finds padding itself
  std::optional<std::int64_t> pad_token_id;    // of rows of padding that a session adds; null: 0
  bool tables_in_place = false;    // large constants are read from the memory of their tensors
  std::int64_t word_rows = 0;      // least of the tables that token ids choose from; 0: not known
  std::int64_t max_positions = 0;  // longest sequence that the position table allows; 0: no limit
  std::int64_t max_keys = 0;       // longest that integer attention sums exactly; 0: no limit
  std::string tuning_note;         // why the stored tuning is not used, if it is not
  std::vector<std::string> notes;  // quantized operands that no integer op took, with the reason
  double program_ms = 0;           // of making it, for programs: from the cache on disk, or built
  int partial_sums = -1;    // constant: those of split-K, which steps overwrite; -1: there are none
  int error_constant = -1;  // int buffer that kernels set when an index was outside its table

  /// True if the values of a row depend on the others of a run: a DynamicQuantizeLinear, whose
  /// scale covers its whole tensor.
  bool depends_on_batch() const;
};

/// Whether a step runs for these sizes.
bool runs(const Step& step, const ir::Bindings& sizes);

/// The alternative for a run of these sizes, or the step's own kernel. Throws bertcl::Error if that
/// depends on an unbound size.
const StepKernel& chosen_kernel(const Step& step, const ir::Bindings& sizes,
                                const opencl::DeviceInfo& device);

/// Calls `visit` with the alternatives of a step, then with its own kernel.
void for_each_kernel(auto& step, const auto& visit) {
  for (auto& other : step.alternatives) visit(other);
  visit(step);
}

/// True if a linear or attention runs in arithmetic of this kind.
bool computes_in(const Plan& plan, Arithmetic::Kind kind);

/// Why the plan is not fully int8: its notes, or that the model is float. Empty if it is.
std::vector<std::string> why_not_int8(const Plan& plan);

}  // namespace bertcl::plan
