// SPDX-License-Identifier: Apache-2.0
// What each quantized op costs, and which ones stay in float for it.
#pragma once
#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "quant/accuracy/max_drop.hpp"
#include "quant/accuracy/sensitivity.hpp"
#include "quant/calibrated_model.hpp"
#include "squad/dataset.hpp"
#include "squad/features.hpp"
#include "text/tokenizer.hpp"

namespace CLI {
class App;
}

namespace bertcl::tools {

struct OpChoiceOptions {
  bool sensitivity = false;
  std::string plot;
  std::size_t samples = 16;
  std::optional<double> max_drop;   ///< F1 points
  std::optional<double> max_error;  ///< percent
  std::string drop_data;
  std::size_t drop_limit = 1000;

  bool wanted() const { return sensitivity || !plot.empty() || max_drop || max_error; }
};

void add_op_choice_options(CLI::App& command, OpChoiceOptions& options);

/// Throws Error, before any work, if there is no data to measure on, F1 is asked for of another
/// task, or a file cannot be read.
void check_op_choice_options(const OpChoiceOptions& options, bool has_data, bool is_squad);

/// What a model was calibrated on.
struct CalibrationQuestions {
  const squad::Dataset* dataset;    ///< null: the data of another task
  std::vector<std::size_t> chosen;  ///< indices of questions
  const text::WordPieceTokenizer& tokenizer;
  squad::FeatureOptions features;
  std::vector<quant::Sample> samples;
};

/// What was measured, and decided.
struct OpChoice {
  std::vector<quant::QuantizedOp> ops;
  quant::Sensitivity sensitivity;
  std::optional<quant::MaxDrop> drop;
  std::string bound;               ///< "0.2 F1"; empty: none was set
  std::string unit;                ///< of the drop
  std::size_t questions = 0;       ///< that it was measured on
  std::optional<double> float_f1;  ///< where the unit is F1

  /// The ops to leave in float, and why.
  std::map<std::size_t, std::string> left() const;
  bool defer() const { return drop && drop->deferred; }
};

OpChoice choose_ops(const quant::CalibratedModel& model, const CalibrationQuestions& questions,
                    const OpChoiceOptions& options);

std::string text_of(const OpChoice& choice);
/// {"sensitivity": ..., "max_drop": ...}
nlohmann::ordered_json to_json(const OpChoice& choice);

}  // namespace bertcl::tools
