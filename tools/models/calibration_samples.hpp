// SPDX-License-Identifier: Apache-2.0
// Calibration samples from the data of any task.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "quant/calibration/samples.hpp"
#include "squad/dataset.hpp"
#include "squad/features.hpp"
#include "tasks/load.hpp"
#include "text/tokenizer.hpp"
#include "tools/options/task_options.hpp"

namespace bertcl::tools {

struct SampleOptions {
  std::size_t wanted = quant::kDefaultSamples;  ///< 0 is all
  bool first = false;              ///< the first of the file, instead of spread over it
  squad::FeatureOptions features;  ///< max_seq_length is for all tasks
};

/// tasks::FirstSequences of the chosen items, each made when it is asked for.
class CalibrationSamples {
 public:
  /// Reads the data. Throws Error if they are not those of the task. The tokenizer must live as
  /// long.
  CalibrationSamples(const TaskOptions& task, const text::Tokenizer& tokenizer,
                     const SampleOptions& options);

  /// None after the last. Throws Error that names the file if no item has tokens.
  std::optional<quant::Sample> next();

  std::size_t size() const { return chosen_.size(); }
  const std::vector<std::size_t>& chosen() const { return chosen_; }  ///< indices in the data
  const std::string& unit() const { return data_.unit; }              ///< "questions", "pairs"
  /// The data of question answering; else null.
  const squad::Dataset* dataset() const { return data_.dataset.get(); }

 private:
  std::string name_;  // of the data
  tasks::FirstSequences data_;
  std::vector<std::size_t> chosen_;
  std::size_t next_ = 0;
  bool any_ = false;  // had tokens
};

}  // namespace bertcl::tools
