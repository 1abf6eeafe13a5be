// SPDX-License-Identifier: Apache-2.0
// Stored inputs and outputs of a model, and their comparison with its current outputs.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ir/port.hpp"
#include "ir/tensor.hpp"
#include "plan/plan.hpp"
#include "runtime/session.hpp"

namespace bertcl::tools {

/// The outputs of another program for some inputs.
struct Golden {
  std::string name;  ///< the file or folder
  runtime::Tensors inputs, outputs;
};

/// Reads a .npz with arrays in__NAME and out__NAME, or an ONNX test_data_set folder with
/// input_K.pb and output_K.pb, K counting as `inputs` and `outputs` do. Throws Error naming it.
Golden load_golden(const std::filesystem::path& path, const std::vector<ir::Port>& inputs,
                   const std::vector<ir::Port>& outputs);

/// A path as it is, or, for a folder of test_data_set_* folders, those.
std::vector<std::filesystem::path> expand_golden(const std::filesystem::path& path);

/// An element agrees if |found - expected| <= absolute + relative * |expected|. Where `absolute` is
/// not set, it is `share` of the largest |expected| of the tensor.
struct Tolerance {
  double relative = 1e-3;
  std::optional<double> absolute;
  double share = 1e-3;
  /// Fraction of the elements of an output that may exceed the tolerance, by at most 0.1 of its
  /// largest value: for quantized models, where a value next to a tie may be rounded either way.
  double mismatches = 0.0;
};

struct Difference {
  bool agrees = true;
  double max_abs = 0.0;  ///< largest |found - expected|
  double max_rel = 0.0;  ///< max_abs / largest |expected|
  std::string message;   ///< what disagrees, with the worst place; or why nothing was compared
};

/// What came of one golden, model or sequence.
struct Comparison {
  std::string name;
  std::string status;     ///< "pass", "reference", "fail", "refused" or "error"
  Difference difference;  ///< of the last three the message tells why

  bool compared() const { return status != "refused" && status != "error"; }
};

/// Compares two tensors. Shapes must be equal, and types up to their width. Floats are compared
/// with the tolerance; NaN equals NaN. 8-bit integers may differ by 1 (ties of requantization);
/// other integers may not.
Difference compare(const std::string& name, const ir::Tensor& found, const ir::Tensor& expected,
                   const Tolerance& tolerance);

/// Compares what a run gave with every output of `golden`: the largest differences over all of
/// them, and a message that names each output that disagrees. Throws Error if one was not given.
Difference compare_outputs(const runtime::Tensors& found, const Golden& golden,
                           const Tolerance& tolerance);

}  // namespace bertcl::tools
