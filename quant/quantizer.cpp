// SPDX-License-Identifier: Apache-2.0
// The quantizer: a float ONNX model and token sequences in, a Q/DQ model and a report out.
#include "quant/quantizer.hpp"

#include <chrono>

#include "quant/calibrate.hpp"
#include "quant/quantization.hpp"
#include "runtime/session.hpp"

namespace bertcl::quant {

Report quantize(const Options& options, const SampleSource& samples, const Progress& progress) {
  const Method& calibration_method = method(options.method);
  Quantization quantization(options);
  Calibration calibration;
  {
    const auto start = std::chrono::steady_clock::now();
    const auto tensors = quantization.activations();
    runtime::SessionOptions session_options;
    session_options.device = options.device;
    session_options.observe = {tensors.begin(), tensors.end()};
    auto session = runtime::Session::load(options.model, session_options);
    MethodOptions method_options = options.method_options;
    method_options.scheme = options.activations;
    calibration = calibrate(session, tensors, calibration_method, method_options, samples,
                            options.batch, progress);
    quantization.report().device = session.context().info().name;
    quantization.report().calibrate_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  Report& report = quantization.report();
  report.samples = calibration.samples;
  report.tokens = calibration.tokens;
  report.data_sha256 = calibration.data_sha256;
  return quantization.write(calibration.ranges);
}

}  // namespace bertcl::quant
