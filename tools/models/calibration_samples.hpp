// SPDX-License-Identifier: Apache-2.0
// Calibration samples from the data of any task.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quant/calibration/samples.hpp"
#include "squad/dataset.hpp"
#include "squad/features.hpp"
#include "text/tokenizer.hpp"
#include "tools/options/task_options.hpp"

namespace bertcl::tools {

struct SampleOptions {
  std::size_t wanted = quant::kDefaultSamples;  ///< 0 is all
  bool first = false;              ///< the first of the file, instead of spread over it
  squad::FeatureOptions features;  ///< max_seq_length is for all tasks
};

/// One sequence of each chosen question or text, made when it is asked for: the first window of a
/// question, the beginning of a text.
class CalibrationSamples {
 public:
  /// Reads the data. Throws Error if they are not those of the task. The tokenizer must live as
  /// long.
  CalibrationSamples(const TaskOptions& task, const text::Tokenizer& tokenizer,
                     const SampleOptions& options);

  std::optional<quant::Sample> next();

  std::size_t size() const { return chosen_.size(); }
  const std::vector<std::size_t>& chosen() const { return chosen_; }  ///< indices in the data
  const std::string& unit() const { return unit_; }                   ///< "questions", "pairs"
  /// The data of question answering; else null.
  const squad::Dataset* dataset() const { return dataset_.get(); }

 private:
  std::shared_ptr<const squad::Dataset> dataset_;
  std::function<std::optional<quant::Sample>(std::size_t)> sample_of_;  // none: it has no words
  std::vector<std::size_t> chosen_;
  std::size_t next_ = 0;
  std::string unit_;
};

}  // namespace bertcl::tools
