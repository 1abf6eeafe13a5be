// SPDX-License-Identifier: Apache-2.0
// bertcl._bertcl.evaluate: scores of a session, with the interpreter's lock released.
#include "evaluation.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bertcl/bertcl.hpp"
#include "callback.hpp"
#include "lock.hpp"
#include "path.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// The tokenizer of a file, or of the first model that has one beside it.
bertcl::Tokenizer tokenizer_of(const Path& vocabulary, const std::vector<Path>& models) {
  if (!vocabulary.name.empty()) return bertcl::Tokenizer::load(vocabulary);
  for (std::size_t i = 0; i + 1 < models.size(); ++i) {
    try {
      return bertcl::Tokenizer::load_beside(models[i]);
    } catch (const bertcl::Error& error) {
      if (error.code() != bertcl::ErrorCode::io) throw;
    }
  }
  return bertcl::Tokenizer::load_beside(models.back());
}

std::string evaluate_squad(const bertcl::Session& session, const bertcl::Tokenizer& tokenizer,
                           const Path& data, nb::object progress, std::size_t limit, int max_length,
                           int batch_tokens, int doc_stride, int max_query_length,
                           int max_answer_length, int n_best, double null_threshold,
                           bool allow_nonfinite) {
  bertcl::SquadOptions options;
  options.limit = limit;
  options.max_length = max_length;
  options.batch_tokens = batch_tokens;
  options.doc_stride = doc_stride;
  options.max_query_length = max_query_length;
  options.max_answer_length = max_answer_length;
  options.n_best = n_best;
  options.null_threshold = null_threshold;
  options.allow_nonfinite = allow_nonfinite;
  Callback tell(std::move(progress));
  return tell.around([&] {
    return bertcl::evaluate_squad(session, tokenizer, data, options, std::ref(tell)).json;
  });
}

std::string evaluate_task(const bertcl::Session& session, const bertcl::Tokenizer& tokenizer,
                          const std::string& task, const Path& data, nb::object progress,
                          std::size_t limit, int max_length, int batch_tokens,
                          const std::vector<std::string>& labels, bool windows,
                          bool allow_nonfinite) {
  bertcl::TaskOptions options;
  options.limit = limit;
  options.max_length = max_length;
  options.batch_tokens = batch_tokens;
  options.labels = labels;
  options.windows = windows;
  options.allow_nonfinite = allow_nonfinite;
  Callback tell(std::move(progress));
  return tell.around([&] {
    return bertcl::evaluate_task(session, tokenizer, task, data, options, std::ref(tell)).json;
  });
}

}  // namespace

void bind_evaluation(nb::module_& m) {
  nb::class_<bertcl::Tokenizer>(m, "Tokenizer")
      .def(
          "__init__",
          [](bertcl::Tokenizer* self, const Path& vocabulary, const std::vector<Path>& models) {
            LockReleased others_run;
            new (self) bertcl::Tokenizer(tokenizer_of(vocabulary, models));
          },
          "vocabulary"_a, "models"_a)
      .def_static(
          "json_of",
          [](const Path& vocabulary) {
            const std::string json = [&] {
              LockReleased others_run;
              return bertcl::Tokenizer::json_of(vocabulary);
            }();
            return nb::bytes(json.data(), json.size());
          },
          "vocabulary"_a)
      .def("__len__", &bertcl::Tokenizer::size)
      .def("model_size", &bertcl::Tokenizer::model_size);
  m.def("evaluate_squad", &evaluate_squad, "session"_a, "tokenizer"_a, "data"_a,
        "progress"_a.none() = nb::none(), "limit"_a = 0, "max_seq_length"_a = 384,
        "batch_tokens"_a = 4096, "doc_stride"_a = 128, "max_query_length"_a = 64,
        "max_answer_length"_a = 30, "n_best"_a = 20, "null_threshold"_a = 0.0,
        "allow_nonfinite"_a = false);
  m.def("evaluate_task", &evaluate_task, "session"_a, "tokenizer"_a, "task"_a, "data"_a,
        "progress"_a.none() = nb::none(), "limit"_a = 0, "max_seq_length"_a = 0,
        "batch_tokens"_a = 0, "labels"_a = std::vector<std::string>(), "windows"_a = false,
        "allow_nonfinite"_a = false);
}
