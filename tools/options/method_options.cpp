// SPDX-License-Identifier: Apache-2.0
// The options of `bertcl quantize` for calibration methods.
#include "tools/options/method_options.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tools/options/option_checks.hpp"

namespace bertcl::tools {

void add_method_options(CLI::App& command, quant::Options& options) {
  const char* group = "How ranges are found";
  quant::MethodOptions& method = options.method_options;
  std::vector<std::string> names;
  std::string summaries = "How ranges of activations are chosen:";
  for (const quant::Method& m : quant::methods()) {
    names.emplace_back(m.name);
    summaries += fmt::format("\n{}: {}", m.name, m.summary);
  }
  one_of(command.add_option("--method", options.method, summaries), names)->group(group);
  command
      .add_flag_function(
          "--two-sided,!--absolute", [&method](std::int64_t yes) { method.symmetric = yes <= 0; },
          "Each end of the range for itself, or -a .. a from magnitudes: percentile is absolute,\n"
          "minmax and entropy two-sided, the others as the integers unless named")
      ->group(group);
  any_number(command, "--percentile", method.percentile,
             "Share of the values inside the range, in percent; 99.999, torch-percentile 99.99",
             "P")
      ->group(group);
  positive(command, "--bins", method.bins,
           "Bins of a histogram at first; 2048, entropy 128. Values beyond them add bins")
      ->group(group);
  positive(command, "--quantized-bins", method.quantized_bins,
           "entropy: bins that stand for the integers")
      ->group(group);
  positive(command, "--start-bin", method.start_bin,
           "mse, torch-entropy: the first bound that is tried")
      ->group(group);
  positive(command, "--stride", method.stride,
           "mse, torch-entropy: from one bound to the next, in bins")
      ->group(group);
  command
      .add_flag("--moving-average", method.moving_average,
                "minmax: moving averages of smallest and largest value, not their extremes")
      ->group(group);
  any_number(command, "--averaging-constant", method.averaging_constant,
             "minmax: weight of what is new in a moving average", "C")
      ->group(group);
  not_negative(command, "--averaged-samples", method.averaged_samples,
               "minmax: questions that are averaged before the average moves; 0 is all")
      ->group(group);
  positive(command, "--batch", options.batch,
           "Questions that run together; the ranges do not depend on it")
      ->group(group);
}

}  // namespace bertcl::tools
