// SPDX-License-Identifier: Apache-2.0
// One pass of the calibration samples through a model, observing its tensors.
#include "quant/calibration/sample_pass.hpp"

#include "bertcl/error.hpp"
#include "quant/calibration/calibrate.hpp"
#include "runtime/session.hpp"
#include "support/fail.hpp"

namespace bertcl::quant {

void run_samples(const Workspace& workspace, const std::set<std::string>& tensors,
                 std::span<const Sample> samples, const ChannelTapFunction& tap,
                 const PassProgress& progress) {
  if (samples.empty())
    throw Error("no calibration samples: the data set is empty or none was selected");
  auto session = workspace.session(tensors, [&] {
    if (progress) progress(0);
  });
  session.set_tap([&](const std::string& name, const opencl::Buffer& buffer, ir::DType dtype,
                      const ir::Sizes& shape) {
    if (!tensors.contains(name)) return;
    if (dtype != ir::DType::f32 || shape.empty())
      fail("tensor '{}' is {} of rank {}; f32 with channels was expected", name, ir::name_of(dtype),
           shape.size());
    const std::int64_t channels = shape.back();
    const std::int64_t rows = channels == 0 ? 0 : ir::element_count(shape) / channels;
    tap(session.context(), name, buffer, rows, channels);
  });
  std::int64_t done = 0;
  for (const Sample& sample : samples) {
    session.run(inputs_of(session.inputs(), sample, session.plan().pad_token_id.value_or(0)));
    if (progress) progress(++done);
  }
}

ChannelRanges channel_statistics(const Workspace& workspace, const std::set<std::string>& tensors,
                                 std::span<const Sample> samples, const PassProgress& progress) {
  const auto observers = observe_samples(
      workspace, tensors, samples,
      [](opencl::Context& context, const std::string& tensor) {
        return ChannelObserver(context, tensor);
      },
      progress);
  ChannelRanges all;
  for (const auto& [tensor, observer] : observers) all.emplace(tensor, observer.statistics());
  return all;
}

}  // namespace bertcl::quant
