// SPDX-License-Identifier: Apache-2.0
// The error of a model's outputs relative to the float model's.
#include "quant/analysis/output_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bertcl/error.hpp"
#include "ir/port.hpp"
#include "quant/calibration/calibrate.hpp"
#include "support/fail.hpp"
#include "text/pad_token_id.hpp"

namespace bertcl::quant {
namespace {

std::vector<float> floats_of(const ir::Tensor& tensor) {
  const ir::Tensor values = tensor.converted(ir::DType::f32);
  const auto view = values.as<float>();
  return {view.begin(), view.end()};
}

}  // namespace

OutputError::OutputError(const std::filesystem::path& model, const opencl::ContextFuture& device,
                         std::span<const Sample> samples)
    : samples_(samples) {
  if (samples.empty()) throw Error("no samples with which to compare the outputs of the models");
  runtime::SessionOptions options;
  options.context = device;
  options.pad_token_id = [&] { return text::read_pad_token_id(model); };
  auto session = runtime::Session::load(model, options);
  context_ = session.shared_context();
  for (const ir::Port& port : session.outputs())
    if (ir::is_float(port.type.dtype)) expected_[port.name];
  if (expected_.empty()) fail("{}: no output is float, so none can be compared", model.string());
  for (const Sample& sample : samples) {
    const auto outputs =
        session.run(inputs_of(session.inputs(), sample, session.plan().pad_token_id.value_or(0)));
    for (auto& [name, values] : expected_) {
      values.push_back(floats_of(outputs.find(name)->second));
      if (std::ranges::any_of(values.back(), [](float f) { return std::isnan(f); }))
        fail(
            "{}: output '{}' holds NaN on these samples, so no error can be measured; "
            "correct the model or the samples",
            model.string(), name);
    }
  }
}

double OutputError::operator()(const Model& model) const {
  runtime::SessionOptions options;
  options.context = context_;
  auto session = model.session(options);
  struct Sum {
    double difference = 0.0, expected = 0.0;
  };
  std::map<std::string, Sum> sums;
  for (std::size_t s = 0; s < samples_.size(); ++s) {
    const auto outputs = session.run(
        inputs_of(session.inputs(), samples_[s], session.plan().pad_token_id.value_or(0)));
    for (const auto& [name, expected] : expected_) {
      const auto found = outputs.find(name);
      const auto values = found == outputs.end() ? std::vector<float>() : floats_of(found->second);
      if (values.size() != expected[s].size())
        fail("{}: output '{}' has {} elements, the float model's {}", model.path().string(), name,
             values.size(), expected[s].size());
      Sum& sum = sums[name];
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double f = expected[s][i], y = values[i], difference = y - f;
        if (!std::isfinite(f) || !std::isfinite(y)) {
          if (y != f) sum.difference = std::numeric_limits<double>::infinity();
          continue;
        }
        sum.difference += difference * difference;
        sum.expected += f * f;
      }
    }
  }
  double mean = 0.0;
  for (const auto& [name, sum] : sums)
    if (sum.difference > 0.0)
      mean += sum.difference / sum.expected / static_cast<double>(sums.size());
  return std::sqrt(mean);
}

}  // namespace bertcl::quant
