// SPDX-License-Identifier: Apache-2.0
// The options of `bertcl quantize` for calibration methods.
#include "quant/settings/method_options.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "quant/settings/option_checks.hpp"

namespace bertcl::quant {

void add_method_options(CLI::App& command, Options& options) {
  const OptionGroup group(command, "How ranges are found");
  MethodOptions& method = options.method_options;
  std::vector<std::string> names;
  std::string summaries = "How activation ranges are chosen:";
  for (const Method& m : methods()) {
    names.emplace_back(m.name);
    summaries += fmt::format("\n{}: {}", m.name, m.summary);
  }
  one_of(command.add_option("--method", options.method, summaries), names);
  add_switch(
      command, "--two-sided,!--absolute", [&method](bool yes) { method.symmetric = !yes; },
      "Choose each end of the range separately, or -a .. a from magnitudes. By "
      "default\npercentile is absolute, minmax and entropy two-sided, the others follow the "
      "integers");
  any_number(command, "--percentile", method.percentile,
             "Percentage of the values inside the range; by default 99.999, torch-percentile 99.99",
             "P");
  positive(command, "--bins", method.bins,
           "Initial histogram bins; by default 2048, entropy 128. Values beyond them add bins");
  positive(command, "--quantized-bins", method.quantized_bins,
           "entropy: bins that represent the integers; by default 128");
  positive(command, "--start-bin", method.start_bin,
           "torch-entropy, mse of symmetric ranges: first bound to try, in bins; by default 128");
  positive(command, "--stride", method.stride,
           "torch-entropy, mse of symmetric ranges: step between bounds, in bins; by default 1");
  command.add_flag(
      "--moving-average", method.moving_average,
      "minmax: moving averages of smallest and largest value, instead of the extremes");
  any_number(command, "--averaging-constant", method.averaging_constant,
             "With --moving-average: weight of new values; by default 0.01", "C");
  not_negative(command, "--averaged-samples", method.averaged_samples,
               "With --moving-average: questions averaged per update; by default 1 (0: all)");
  positive(command, "--batch", options.batch, "Questions per batch; does not change the ranges");
}

}  // namespace bertcl::quant
