// SPDX-License-Identifier: Apache-2.0
// The cost of each quantized op, and the ops left in float because of it.
#pragma once
#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "quant/analysis/float_fallback.hpp"
#include "quant/analysis/sensitivity.hpp"
#include "quant/calibrated_model.hpp"
#include "squad/dataset.hpp"
#include "squad/features.hpp"
#include "support/cli_forward.hpp"
#include "support/written_files.hpp"
#include "text/tokenizer.hpp"
#include "tools/options/task_options.hpp"

namespace bertcl::tools {

struct OpChoiceOptions {
  bool sensitivity = false;
  std::string plot;
  std::optional<std::size_t> samples;  ///< to measure on; 16
  std::optional<double> max_drop;      ///< points of the task's score
  std::optional<double> max_error;     ///< percent
  std::string drop_data;
  std::size_t drop_samples = 1000;

  bool shows_sensitivity() const { return sensitivity || !plot.empty(); }
  bool wanted() const { return shows_sensitivity() || max_drop || max_error; }
};

/// --labels goes into `task`.
void add_op_choice_options(CLI::App& command, OpChoiceOptions& options, TaskOptions& task);

/// Throws Error, before any work, if there is no data to measure on, there are labels for a task
/// without, none for a model that needs them, or a file cannot be read.
void check_op_choice_options(const OpChoiceOptions& options, const TaskOptions& task,
                             const std::filesystem::path& model);

/// The calibration data of a model.
struct CalibrationData {
  const TaskOptions& task;
  const squad::Dataset* dataset;    ///< null: the data of another task
  std::vector<std::size_t> chosen;  ///< indices of questions or texts
  const text::Tokenizer& tokenizer;
  squad::FeatureOptions features;  ///< max_seq_length is for all tasks
  std::vector<quant::Sample> samples;
};

/// The measurements and the decision.
struct OpChoice {
  std::vector<quant::QuantizedOp> ops;
  std::optional<quant::Sensitivity> sensitivity;  ///< none where no op had to be ranked
  std::optional<quant::FloatFallback> drop;
  std::string bound;                  ///< "0.2 F1"; empty: none was set
  bool bounds_error = false;          ///< the outputs' error is bounded, not the score's drop
  std::string unit;                   ///< of the drop
  std::size_t items = 0;              ///< that it was measured on
  std::string items_unit;             ///< what they are: "questions"
  std::optional<double> float_score;  ///< points, where the unit is a score

  /// The ops to leave in float, and why.
  std::map<std::size_t, std::string> float_ops() const;
  bool unnormalize() const { return drop && drop->unnormalized; }
  /// What is bounded, in messages.
  const char* loss() const { return bounds_error ? "error" : "drop"; }
};

/// The plot is one of `written`.
OpChoice choose_ops(const quant::CalibratedModel& model, const CalibrationData& data,
                    const OpChoiceOptions& options, WrittenFiles& written);

std::string text_of(const OpChoice& choice);
/// {"sensitivity": ..., "max_drop": ...}, each where there is one.
nlohmann::ordered_json to_json(const OpChoice& choice);

}  // namespace bertcl::tools
