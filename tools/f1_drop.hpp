// SPDX-License-Identifier: Apache-2.0
// How much F1 a model loses against another on SQuAD questions.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "opencl/context.hpp"
#include "squad/dataset.hpp"
#include "squad/features.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::tools {

/// The questions of a data set that are not among `taken` (indices), `limit` of them in equal
/// steps; all if it is 0. Throws Error if there are none.
squad::Dataset other_questions(const squad::Dataset& dataset, const std::vector<std::size_t>& taken,
                               std::size_t limit);

class F1Drop {
 public:
  /// Measures `model`, the float one. Throws Error if it has no question-answering head. The
  /// tokenizer must live as long.
  F1Drop(const std::filesystem::path& model, const std::string& device, squad::Dataset dataset,
         const text::WordPieceTokenizer& tokenizer, const squad::FeatureOptions& features);

  /// F1 of the float model less that of this one, in points.
  double operator()(const std::filesystem::path& model);

  double float_f1() const { return float_f1_; }
  std::size_t questions() const { return dataset_.questions.size(); }

 private:
  double f1_of(const std::filesystem::path& model, const std::string& task);

  std::string device_;
  squad::Dataset dataset_;
  const text::WordPieceTokenizer& tokenizer_;
  squad::FeatureOptions features_;
  std::shared_ptr<opencl::Context> context_;
  double float_f1_ = 0.0;
};

}  // namespace bertcl::tools
