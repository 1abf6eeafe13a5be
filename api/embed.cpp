// SPDX-License-Identifier: Apache-2.0
// Vectors of texts: sentence-transformers' files, and batches of similar length.
#include "bertcl/embed.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "api/boundary.hpp"
#include "api/check_not_negative.hpp"
#include "api/evaluation.hpp"
#include "api/tokenizer_impl.hpp"
#include "bertcl/error.hpp"
#include "onnx/model_path.hpp"
#include "runtime/pooling.hpp"
#include "support/check_path.hpp"
#include "support/with_code.hpp"
#include "tasks/features.hpp"
#include "tasks/model_files/embedding_files.hpp"
#include "tasks/model_files/model_config.hpp"
#include "text/run_rows.hpp"

namespace bertcl {
namespace {

std::int64_t dimensions_of(const Session& session) {
  const std::vector<Port>& outputs = session.info().outputs;
  if (outputs.size() != 1 || outputs[0].name != runtime::kPooledOutput)
    throw Error("the session does not compute text vectors; load it with SessionOptions::pooling");
  if (outputs[0].shape.back() < 0) throw Error("the width of the model's vectors is not constant");
  return outputs[0].shape.back();
}

}  // namespace

EmbeddingSettings read_embedding_settings(const std::filesystem::path& model) {
  return translate_exceptions([&] {
    if (!model.empty()) check_path(model, "model");
    const std::filesystem::path file = onnx_io::find_model(model);
    std::error_code failure;
    if (!file.empty() && !std::filesystem::exists(file, failure))
      throw Error(file.string() + ": " + (failure ? failure.message() : "there is no such model"),
                  ErrorCode::io);
    tasks::EmbeddingFiles files =
        with_code(ErrorCode::invalid_file, [&] { return tasks::read_embedding_files(file); });
    EmbeddingSettings settings;
    settings.pooling = {files.pooling, !files.pooling.empty(), files.normalize,
                        files.dimensions.value_or(0), std::move(files.dense)};
    settings.max_length = files.max_length.value_or(0);
    settings.prompts = std::move(files.prompts);
    settings.default_prompt_name = std::move(files.default_prompt_name);
    settings.default_prompt = std::move(files.default_prompt);
    settings.pools_prompt = files.pools_prompt;
    settings.scores_pairs = files.scores_pairs;
    settings.lower_case = files.lower_case;
    settings.similarity = std::move(files.similarity);
    return settings;
  });
}

Tensor embed(const Session& session, const Tokenizer& tokenizer,
             const std::vector<std::string>& texts, const EmbedOptions& options) {
  return translate_exceptions([&] {
    check_not_negative("max-length", options.max_length, "what the model takes");
    const std::int64_t dimensions = dimensions_of(session);
    const std::int64_t max_length = tasks::longest_text(
        options.max_length > 0 ? std::optional(options.max_length) : std::nullopt,
        session.info().max_length);
    std::vector<std::string> prompted;
    for (const std::string& text : texts)
      prompted.push_back(tasks::embedded_text(options.prompt + text, options.lower_case,
                                              TokenizerAccess::of(tokenizer)));
    const Sequences all = tokenizer.encode_texts(prompted, max_length);
    const std::vector<std::int32_t> ids(all.ids.begin(), all.ids.end());
    std::vector<text::Row> rows;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto begin = static_cast<std::size_t>(all.offsets[i]);
      const auto length = static_cast<std::size_t>(all.offsets[i + 1]) - begin;
      rows.push_back({std::span(ids).subspan(begin, length), length});
    }
    const auto width = static_cast<std::size_t>(dimensions);
    std::vector<float> vectors(texts.size() * width);
    text::run_rows(rows, {false, width, false, "a vector of " + std::to_string(width)},
                   {options.batch_tokens, 256}, model_of(session, {runtime::kPooledOutput}, false),
                   [&](std::size_t i, std::span<const float> vector) {
                     std::ranges::copy(
                         vector,
                         vectors.begin() + std::ssize(vector) * static_cast<std::ptrdiff_t>(i));
                   });
    return Tensor::of({std::ssize(texts), dimensions}, vectors);
  });
}

}  // namespace bertcl
