// SPDX-License-Identifier: Apache-2.0
// Vectors of texts: sentence-transformers' files, and batches of similar length.
#include "bertcl/embed.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <system_error>
#include <utility>

#include "api/boundary.hpp"
#include "api/option_checks.hpp"
#include "api/tokenizer_impl.hpp"
#include "bertcl/error.hpp"
#include "onnx/model_path.hpp"
#include "runtime/pooling.hpp"
#include "support/check_path.hpp"
#include "support/with_code.hpp"
#include "tasks/embedding_files.hpp"
#include "tasks/features.hpp"
#include "text/batch.hpp"

namespace bertcl {
namespace {

constexpr std::int64_t kLongest = 512;  // tokens, for a model that sets no limit

std::int64_t dimensions_of(const Session& session) {
  const std::vector<Port>& outputs = session.info().outputs;
  if (outputs.size() != 1 || outputs[0].name != runtime::pooled_output)
    throw Error("the session does not compute text vectors; load it with SessionOptions::pooling");
  if (outputs[0].shape.back() < 0) throw Error("the width of the model's vectors is not constant");
  return outputs[0].shape.back();
}

/// Those of the group, one after the other.
Sequences gathered(const Sequences& all, const std::vector<std::size_t>& group) {
  Sequences batch;
  for (const std::size_t i : group) {
    const auto begin = static_cast<std::ptrdiff_t>(all.offsets[i]);
    const auto end = static_cast<std::ptrdiff_t>(all.offsets[i + 1]);
    batch.ids.insert(batch.ids.end(), all.ids.begin() + begin, all.ids.begin() + end);
    batch.offsets.push_back(std::ssize(batch.ids));
  }
  return batch;
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
    settings.default_prompt = std::move(files.default_prompt);
    settings.pools_prompt = files.pools_prompt;
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
    const std::int64_t limit = session.info().max_length;
    std::int64_t max_length = options.max_length > 0 ? options.max_length : kLongest;
    if (limit > 0) max_length = options.max_length > 0 ? std::min(max_length, limit) : limit;
    std::vector<std::string> prompted;
    for (const std::string& text : texts)
      prompted.push_back(tasks::embedded_text(options.prompt + text, options.lower_case));
    const Sequences all = tokenizer.encode_texts(prompted, max_length);
    std::vector<std::size_t> lengths;
    for (std::size_t i = 0; i < texts.size(); ++i)
      lengths.push_back(static_cast<std::size_t>(all.offsets[i + 1] - all.offsets[i]));
    std::vector<float> vectors(texts.size() * static_cast<std::size_t>(dimensions));
    for (auto& group : text::group_by_length(lengths, {options.batch_tokens, 256})) {
      std::erase_if(group, [&](std::size_t i) { return lengths[i] == 0; });  // their vectors are 0
      if (group.empty()) continue;
      const Tensors outputs = session.run(gathered(all, group));
      const Tensor& output = outputs.begin()->second;
      if (output.shape() != std::vector{std::ssize(group), dimensions})
        throw Error(fmt::format("expected vectors [{}, {}], got [{}]", group.size(), dimensions,
                                fmt::join(output.shape(), ", ")),
                    ErrorCode::internal);
      const auto made = output.values<float>();
      for (std::size_t row = 0; row < group.size(); ++row)
        std::copy_n(made.begin() + static_cast<std::ptrdiff_t>(row) * dimensions, dimensions,
                    vectors.begin() + static_cast<std::ptrdiff_t>(group[row]) * dimensions);
    }
    return Tensor::of({std::ssize(texts), dimensions}, vectors);
  });
}

}  // namespace bertcl
