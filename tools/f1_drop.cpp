// SPDX-License-Identifier: Apache-2.0
// How much F1 a model loses against another on SQuAD questions.
#include "tools/f1_drop.hpp"

#include <set>
#include <utility>

#include "bertcl/error.hpp"
#include "quant/samples.hpp"
#include "squad/pipeline.hpp"
#include "tools/interruption.hpp"
#include "tools/progress.hpp"
#include "tools/qa_model.hpp"

namespace bertcl::tools {

squad::Dataset other_questions(const squad::Dataset& dataset, const std::vector<std::size_t>& taken,
                               std::size_t limit) {
  const std::set<std::size_t> skipped(taken.begin(), taken.end());
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < dataset.questions.size(); ++i)
    if (!skipped.contains(i)) left.push_back(i);
  if (left.empty())
    throw Error(
        "no questions are left to measure F1 on: all are calibrated on; take fewer --samples, or "
        "give other questions by --drop-data FILE");
  squad::Dataset chosen{dataset.version_2, dataset.contexts, {}};
  for (const std::size_t i : quant::spread(left.size(), limit))
    chosen.questions.push_back(dataset.questions[left[i]]);
  return chosen;
}

F1Drop::F1Drop(const std::filesystem::path& model, const std::string& device,
               squad::Dataset dataset, const text::WordPieceTokenizer& tokenizer,
               const squad::FeatureOptions& features)
    : device_(device),
      dataset_(std::move(dataset)),
      tokenizer_(tokenizer),
      features_(features),
      float_f1_(f1_of(model, "float model")) {}

double F1Drop::operator()(const std::filesystem::path& model) {
  return float_f1_ - f1_of(model, "quantized model");
}

double F1Drop::f1_of(const std::filesystem::path& model, const std::string& task) {
  runtime::SessionOptions options;
  options.device = device_;
  options.context = context_;
  auto session = runtime::Session::load(model, options);
  context_ = session.shared_context();
  QaModel answers(session);
  squad::EvaluateOptions evaluate;
  evaluate.features = features_;
  answers.bound(evaluate.features, evaluate.batches);
  Progress progress("F1 of the " + task, "questions");
  const auto logits = [&](const squad::Batch& batch) {
    throw_if_interrupted();
    return answers(batch);
  };
  return squad::evaluate(dataset_, tokenizer_, evaluate, logits,
                         [&](const squad::Progress& now) {
                           progress.update(now.questions, now.questions_total);
                         })
      .scores.f1;
}

}  // namespace bertcl::tools
