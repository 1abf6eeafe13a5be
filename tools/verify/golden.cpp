// SPDX-License-Identifier: Apache-2.0
// Stored inputs and outputs of a model, and their comparison with its current outputs.
#include "tools/verify/golden.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "npz/npz.hpp"
#include "onnx/tensor_file.hpp"
#include "support/fail.hpp"

namespace bertcl::tools {
namespace {

namespace fs = std::filesystem;

/// input_0.pb, input_1.pb, ... up to the first that is not there. A tensor that bears the name of a
/// port belongs to it, any other to the port of its number.
runtime::Tensors load_numbered(const fs::path& folder, const std::string& stem,
                               const std::vector<ir::Port>& ports) {
  runtime::Tensors tensors;
  for (std::size_t number = 0;; ++number) {
    const fs::path file = folder / fmt::format("{}_{}.pb", stem, number);
    if (!fs::exists(file)) return tensors;
    auto [name, tensor] = onnx_io::read_tensor_file(file);
    const bool known =
        std::ranges::any_of(ports, [&, &n = name](const ir::Port& port) { return port.name == n; });
    if (!known) {
      if (number >= ports.size()) {
        fail("{}: the model has only {} {}s", file.string(), ports.size(), stem);
      }
      name = ports[number].name;
    }
    tensors[name] = std::move(tensor);
  }
}

/// Halves are stored as their bit patterns, u16, since NumPy has no bf16.
ir::Tensor as_port(const std::string& name, ir::Tensor tensor, const std::vector<ir::Port>& ports) {
  for (const ir::Port& port : ports) {
    const ir::DType dtype = port.type.dtype;
    if (port.name != name || tensor.dtype() != ir::DType::u16) continue;
    if (dtype != ir::DType::f16 && dtype != ir::DType::bf16) continue;
    const auto bits = tensor.as<std::uint16_t>();
    return ir::Tensor::of<std::uint16_t>(tensor.shape(), {bits.begin(), bits.end()}, dtype);
  }
  return tensor;
}

std::string place(std::size_t index, const ir::Sizes& shape) {
  ir::Sizes position(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    const auto extent = static_cast<std::size_t>(shape[d]);
    position[d] = static_cast<std::int64_t>(index % extent);
    index /= extent;
  }
  return fmt::format("[{}]", fmt::join(position, ", "));
}

double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0.0;
  const double difference = std::abs(a - b);
  return std::isfinite(difference) ? difference : std::numeric_limits<double>::infinity();
}

double distance(std::int64_t a, std::int64_t b) {
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  return static_cast<double>(a > b ? x - y : y - x);
}

/// The values outside of a tolerance.
struct Wrong {
  std::size_t count = 0, worst = 0;
  double max_abs = 0.0;  ///< of all values
  std::string message;   ///< "at [1, 2]: 3 instead of 4", of the worst
};

template <class T>
Wrong wrong_values(const std::vector<T>& found, const std::vector<T>& expected,
                   const ir::Sizes& shape, double absolute, double relative) {
  Wrong wrong;
  double worst = 0.0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double difference = distance(found[i], expected[i]);
    if (difference == 0.0) continue;
    wrong.max_abs = std::max(wrong.max_abs, difference);
    const double allowed = absolute + relative * std::abs(static_cast<double>(expected[i]));
    if (std::isfinite(difference) && difference <= allowed) continue;
    ++wrong.count;
    if (difference <= worst) continue;
    worst = difference;
    wrong.worst = i;
  }
  if (wrong.count > 0)
    wrong.message = fmt::format("at {}: got {}, expected {}", place(wrong.worst, shape),
                                found[wrong.worst], expected[wrong.worst]);
  return wrong;
}

}  // namespace

std::vector<fs::path> expand_golden(const fs::path& path) {
  std::vector<fs::path> sets;
  if (fs::is_directory(path) && !fs::exists(path / "output_0.pb")) {
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set")) {
        sets.push_back(entry.path());
      }
    }
  }
  std::ranges::sort(sets);
  if (sets.empty()) sets.push_back(path);
  return sets;
}

Golden load_golden(const fs::path& path, const std::vector<ir::Port>& inputs,
                   const std::vector<ir::Port>& outputs) {
  Golden golden{path.string(), {}, {}};
  if (fs::is_directory(path)) {
    golden.inputs = load_numbered(path, "input", inputs);
    golden.outputs = load_numbered(path, "output", outputs);
    if (golden.outputs.empty()) {
      fail("{}: no output_0.pb in this folder", golden.name);
    }
    return golden;
  }
  const auto of_the_model = [&](const std::string& name) {
    if (!name.starts_with("in__") && !name.starts_with("out__"))
      fail("{}: array '{}' is neither in__NAME nor out__NAME", golden.name, name);
    return true;
  };
  for (auto& [name, tensor] : npz::load(path, of_the_model)) {
    if (name.starts_with("in__"))
      golden.inputs[name.substr(4)] = as_port(name.substr(4), std::move(tensor), inputs);
    else
      golden.outputs[name.substr(5)] = as_port(name.substr(5), std::move(tensor), outputs);
  }
  if (golden.outputs.empty()) fail("{}: no array out__NAME", golden.name);
  return golden;
}

Difference compare(const std::string& name, const ir::Tensor& found, const ir::Tensor& expected,
                   const Tolerance& tolerance) {
  Difference result;
  const auto disagree = [&](std::string message) {
    result.agrees = false;
    result.message = std::move(message);
    return result;
  };
  if (found.shape() != expected.shape()) {
    result.max_abs = result.max_rel = std::numeric_limits<double>::infinity();
    return disagree(fmt::format("{}: shape [{}], expected [{}]", name,
                                fmt::join(found.shape(), ", "), fmt::join(expected.shape(), ", ")));
  }
  if (ir::is_float(found.dtype()) != ir::is_float(expected.dtype())) {
    result.max_abs = result.max_rel = std::numeric_limits<double>::infinity();
    return disagree(fmt::format("{}: type {}, expected {}", name, ir::name_of(found.dtype()),
                                ir::name_of(expected.dtype())));
  }
  const std::vector<double> values = expected.to_doubles();
  double largest = 0.0;
  for (const double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  const bool floats = ir::is_float(expected.dtype());
  const double absolute = !floats ? (ir::is_int8(expected.dtype()) ? 1.0 : 0.0)
                                  : tolerance.absolute.value_or(tolerance.share * largest);
  const Wrong wrong =
      floats ? wrong_values(found.to_doubles(), values, found.shape(), absolute, tolerance.relative)
             : wrong_values(found.to_ints(), expected.to_ints(), found.shape(), absolute,
                            0.0);  // a double does not hold all of them
  result.max_abs = wrong.max_abs;
  result.max_rel = result.max_abs == 0.0 ? 0.0 : result.max_abs / largest;
  constexpr double largest_mismatch = 0.1;
  const bool acceptable =
      floats && result.max_rel <= largest_mismatch &&
      static_cast<double>(wrong.count) <= tolerance.mismatches * static_cast<double>(values.size());
  if (wrong.count > 0 && !acceptable) {
    return disagree(fmt::format("{} [{}]: {} of {} values differ, the largest difference {}", name,
                                fmt::join(found.shape(), ", "), wrong.count, values.size(),
                                wrong.message));
  }
  return result;
}

Difference compare_outputs(const runtime::Tensors& found, const Golden& golden,
                           const Tolerance& tolerance) {
  Difference all;
  for (const auto& [name, expected] : golden.outputs) {
    const auto output = found.find(name);
    if (output == found.end()) {
      fail("{}: the model has no output '{}'", golden.name, name);
    }
    const Difference one = compare(name, output->second, expected, tolerance);
    all.max_abs = std::max(all.max_abs, one.max_abs);
    all.max_rel = std::max(all.max_rel, one.max_rel);
    if (one.agrees) continue;
    all.agrees = false;
    all.message += (all.message.empty() ? "" : "; ") + one.message;
  }
  return all;
}

}  // namespace bertcl::tools
