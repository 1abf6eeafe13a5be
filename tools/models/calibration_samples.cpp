// SPDX-License-Identifier: Apache-2.0
// Calibration samples from the data of any task.
#include "tools/models/calibration_samples.hpp"

#include <algorithm>

#include "support/fail.hpp"
#include "text/base/data_file.hpp"

namespace bertcl::tools {

CalibrationSamples::CalibrationSamples(const TaskOptions& task, const text::Tokenizer& tokenizer,
                                       const SampleOptions& options)
    : name_(text::data_name(task.data)),
      data_(tasks::read_first_sequences(task.name, task.data, tokenizer, options.features)),
      chosen_(quant::spread(data_.items, options.wanted, options.first)) {}

std::optional<quant::Sample> CalibrationSamples::next() {
  while (next_ < chosen_.size()) {
    const auto sequence = data_.sequence(chosen_[next_++]);
    if (!sequence) continue;
    any_ = true;
    quant::Sample sample{{sequence->ids.begin(), sequence->ids.end()}, {}};
    sample.token_type_ids.assign(sample.ids.size(), 1);
    std::fill_n(sample.token_type_ids.begin(), sequence->second, 0);
    return sample;
  }
  if (!any_)
    fail("{}: no calibration samples: none of {} {} has tokens", name_, chosen_.size(), data_.unit);
  return std::nullopt;
}

}  // namespace bertcl::tools
