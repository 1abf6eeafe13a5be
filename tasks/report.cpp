// SPDX-License-Identifier: Apache-2.0
// An evaluation in reports: the titles of its metrics, and its row.
#include "tasks/report.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace bertcl::tasks {

std::string metric_title(const std::string& name) {
  static const std::map<std::string, std::string> titles = {
      {"accuracy", "accuracy"},
      {"pearson", "Pearson"},
      {"spearman", "Spearman"},
      {"exact_match", "EM"},
      {"f1", "F1"},
      {"precision", "precision"},
      {"recall", "recall"},
      {"macro_f1", "macro F1"},
      {"micro_f1", "micro F1"},
      {"ndcg_at_10", "NDCG@10"},
      {"mrr_at_10", "MRR@10"},
      {"recall_at_10", "recall@10"},
      {"bm25_mrr_at_10", "MRR@10 of BM25"},
      {"bm25_recall_at_20", "recall@20 of BM25"}};
  return titles.at(name);
}

void EvaluationRow::set_results(const Evaluation& evaluation) {
  metrics.clear();
  more_metrics.clear();
  for (const Metric& metric : evaluation.metrics)
    if (metric.name != "exact")  // equals exact_match
      (metric.detail ? more_metrics : metrics).emplace_back(metric.name, metric.value);
  total = evaluation.items;
  features = evaluation.sequences;
  tokens = evaluation.tokens;
  tokens_padded = evaluation.tokens_padded;
  total_seconds = evaluation.total_seconds;
  model_seconds = evaluation.model_seconds;
  if (evaluation.results->answers().empty()) truncated = evaluation.items_cut;
}

double EvaluationRow::tokens_per_second() const {
  return static_cast<double>(tokens) / std::max(1e-9, total_seconds);
}

nlohmann::ordered_json to_json(const EvaluationRow& row) {
  nlohmann::ordered_json json = {{"path", row.path.string()}, {"precision", row.precision}};
  for (const auto& [name, value] : row.metrics) json[name] = value;
  json["total"] = row.total;
  json["seconds"] = row.total_seconds;
  json["features"] = row.features;
  json["tokens"] = row.tokens;
  json["tokens_padded"] = row.tokens_padded;
  json["tokens_per_second"] = row.tokens_per_second();
  json["model_seconds"] = row.model_seconds;
  json["model_bytes"] = row.bytes;
  for (const auto& [name, value] : row.more_metrics)
    if (!json.contains(name)) json[name] = value;
  if (row.truncated) json["truncated"] = *row.truncated;
  return json;
}

}  // namespace bertcl::tasks
