// SPDX-License-Identifier: Apache-2.0
// The C interface to quantization and evaluation.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/c_boundary.hpp"
#include "api/c_session.hpp"
#include "api/evaluation.hpp"
#include "api/session_impl.hpp"
#include "bertcl/bertcl.h"
#include "bertcl/bertcl.hpp"
#include "support/json_text.hpp"
#include "tasks/kinds/append_prediction.hpp"

namespace {

using bertcl::c::guarded, bertcl::c::read_options, bertcl::c::refuse;

char* copy_of(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (!copy) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

std::vector<std::string> strings(const char* const* given, std::size_t count, const char* name) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < count; ++i) {
    if (!given || !given[i]) throw bertcl::Error(std::string(name) + " must not be NULL");
    all.emplace_back(given[i]);
  }
  return all;
}

std::optional<bool> choice(std::int32_t given, const char* name) {
  if (given < BERTCL_BY_PRESET || given > BERTCL_NO)
    throw bertcl::Error(std::string(name) + " is not a bertcl_choice");
  return given == BERTCL_BY_PRESET ? std::nullopt : std::optional(given == BERTCL_YES);
}

/// 0 is the default.
void set_positive(auto& value, auto given, const char* name) {
  if (given < 0) throw bertcl::Error(std::string(name) + " must not be negative");
  if (given > 0) value = static_cast<std::remove_reference_t<decltype(value)>>(given);
}

bertcl::QuantizeOptions quantize_options(const bertcl_quantize_options& given) {
  bertcl::QuantizeOptions all;
  if (given.preset) all.preset = given.preset;
  if (given.method) all.method = given.method;
  all.smooth = choice(given.smooth, "smooth");
  all.gptq = choice(given.gptq, "gptq");
  all.bias_correction = choice(given.bias_correction, "bias_correction");
  all.exclude = strings(given.exclude, given.exclude_count, "names of nodes");
  if (given.device) all.device = given.device;
  return all;
}

void quantize(const char* model, const char* output, const bertcl::Sequences& samples,
              const bertcl_quantize_options& options, char** report) {
  const auto tell = [&](std::string_view pass, std::int64_t done) {
    return !options.progress ||
           options.progress(options.user, std::string(pass).c_str(), done, samples.count()) == 0;
  };
  const bertcl::QuantizeReport made =
      bertcl::quantize(model, output, samples, quantize_options(options), tell);
  if (report) *report = copy_of(made.json);
}

bertcl::Tokenizer tokenizer_of(const char* vocabulary, const std::filesystem::path& model) {
  return vocabulary ? bertcl::Tokenizer::load(vocabulary) : bertcl::Tokenizer::load_beside(model);
}

bertcl::SquadOptions squad_options(const bertcl_evaluate_options& given) {
  bertcl::SquadOptions all;
  set_positive(all.max_length, given.max_length, "max_length");
  set_positive(all.doc_stride, given.doc_stride, "doc_stride");
  set_positive(all.max_query_length, given.max_query_length, "max_query_length");
  set_positive(all.max_answer_length, given.max_answer_length, "max_answer_length");
  set_positive(all.n_best, given.n_best, "n_best");
  set_positive(all.batch_tokens, given.batch_tokens, "batch_tokens");
  set_positive(all.limit, given.limit, "limit");
  all.null_threshold = given.null_threshold;
  all.allow_nonfinite = given.allow_nonfinite != 0;
  return all;
}

bertcl::TaskOptions task_options(const bertcl_evaluate_options& given) {
  bertcl::TaskOptions all;
  all.labels = strings(given.labels, given.label_count, "labels");
  all.windows = given.windows != 0;
  set_positive(all.max_length, given.max_length, "max_length");
  set_positive(all.batch_tokens, given.batch_tokens, "batch_tokens");
  set_positive(all.limit, given.limit, "limit");
  all.allow_nonfinite = given.allow_nonfinite != 0;
  return all;
}

using Json = nlohmann::ordered_json;

/// The report, and in it the predictions if they are wanted.
std::string evaluated(const bertcl::Session& session, const char* data,
                      const bertcl_evaluate_options& options) {
  const auto tell = [&](std::size_t done, std::size_t total) {
    return !options.progress ||
           options.progress(options.user, "evaluate", static_cast<std::int64_t>(done),
                            static_cast<std::int64_t>(total)) == 0;
  };
  const bertcl::TaskOptions for_task = task_options(options);
  const std::filesystem::path model = bertcl::SessionAccess::file(session);
  if (!options.vocabulary && model.empty())
    throw bertcl::Error(
        "the session was loaded from memory, so no vocabulary lies beside its file; set "
        "vocabulary");
  const bertcl::Tokenizer tokenizer = tokenizer_of(options.vocabulary, model);
  const std::string_view task = options.task ? options.task : "question-answering";
  std::string report;
  Json predictions = Json::object();
  if (task == "question-answering") {
    bertcl::SquadScores scores =
        bertcl::evaluate_squad(session, tokenizer, data, squad_options(options), tell);
    report = std::move(scores.json);
    if (!options.predictions) return report;
    for (const auto& [id, answer] : scores.answers)
      bertcl::tasks::append_prediction(predictions, id, answer);
  } else {
    bertcl::TaskScores scores =
        bertcl::evaluate_task(session, tokenizer, task, data, for_task, tell);
    report = std::move(scores.json);
    if (!options.predictions) return report;
    for (const auto& [id, value] : scores.predictions)
      bertcl::tasks::append_prediction(predictions, id, Json::parse(value));
  }
  Json all = Json::parse(report);
  all["predictions"] = std::move(predictions);
  return bertcl::json_text(all);
}

}  // namespace

bertcl_status bertcl_quantize(const char* model, const char* output, const char* data,
                              const bertcl_quantize_options* options, char** report) {
  if (report) *report = nullptr;
  if (!model || !output || !data) return refuse("model, output and data must not be NULL");
  return guarded([&] {
    const bertcl_quantize_options given = read_options(options);
    bertcl::SampleOptions samples;
    set_positive(samples.count, given.samples, "samples");
    set_positive(samples.max_length, given.max_length, "max_length");
    const bertcl::Tokenizer tokenizer = tokenizer_of(given.vocabulary, model);
    quantize(model, output, bertcl::read_samples(data, tokenizer, samples), given, report);
  });
}

bertcl_status bertcl_quantize_sequences(const char* model, const char* output,
                                        const bertcl_sequences* samples,
                                        const bertcl_quantize_options* options, char** report) {
  if (report) *report = nullptr;
  if (!model || !output) return refuse("model and output must not be NULL");
  return guarded([&] {
    const bertcl_quantize_options given = read_options(options);
    quantize(model, output, bertcl::c::sequences_of(samples), given, report);
  });
}

bertcl_status bertcl_evaluate(const bertcl_session* session, const char* data,
                              const bertcl_evaluate_options* options, char** report) {
  if (report) *report = nullptr;
  if (!session || !data || !report) return refuse("session, data and report must not be NULL");
  return guarded([&] {
    const bertcl_evaluate_options given = read_options(options);
    *report = copy_of(evaluated(session->session, data, given));
  });
}

void bertcl_string_free(char* string) { std::free(string); }
