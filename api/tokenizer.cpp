// SPDX-License-Identifier: Apache-2.0
// The tokenizer of the public interface.
#include <limits>
#include <optional>
#include <utility>

#include "api/boundary.hpp"
#include "api/tokenizer_impl.hpp"
#include "bertcl/sequences.hpp"
#include "onnx/model_path.hpp"
#include "support/check_path.hpp"
#include "support/with_code.hpp"
#include "text/model_tokenizer.hpp"
#include "text/truncation.hpp"

namespace bertcl {

void Tokenizer::Impl::add(Sequences& to, std::string_view first, const std::string* second,
                          std::int64_t max_length) const {
  const auto a = tokenizer.encode(first);
  const auto b = second ? std::optional(tokenizer.encode(*second)) : std::nullopt;
  const text::SpecialTokens& around = tokenizer.special();
  const auto special = static_cast<std::int64_t>(second ? around.pair_count() : around.count());
  if (max_length < special)
    throw Error("sequences of " + std::to_string(max_length) + " tokens leave no room for text");
  const auto room = static_cast<std::size_t>(max_length - special);
  const text::EncodedInput all =
      text::add_special_tokens(around, a, b, room, tokenizer.truncates_left());
  to.token_type_ids.resize(to.ids.size() + all.second);
  to.ids.insert(to.ids.end(), all.ids.begin(), all.ids.end());
  to.token_type_ids.resize(to.ids.size(), 1);
  to.offsets.push_back(std::ssize(to.ids));
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::load(const std::filesystem::path& vocabulary) {
  return translate_exceptions([&] {
    check_path(vocabulary, "vocabulary");
    auto tokenizer =
        with_code(ErrorCode::invalid_file, [&] { return text::load_with_config(vocabulary); });
    return Tokenizer(std::unique_ptr<Impl>(new Impl(std::move(tokenizer))));
  });
}

Tokenizer Tokenizer::load_beside(const std::filesystem::path& model) {
  return load(translate_exceptions([&] {
    check_path(model, "model");
    return with_code(ErrorCode::io, [&] {
      return text::find_vocabulary({onnx_io::find_model(model)}, "copy the model's beside it");
    });
  }));
}

std::string Tokenizer::json_of(const std::filesystem::path& vocabulary) {
  return translate_exceptions([&] {
    check_path(vocabulary, "vocabulary");
    return with_code(ErrorCode::invalid_file, [&] {
      return text::Tokenizer::json_of(vocabulary, text::with_config(vocabulary));
    });
  });
}

std::vector<std::int64_t> Tokenizer::encode(std::string_view text) const {
  return translate_exceptions([&] {
    const auto ids = held(impl_, "tokenizer").tokenizer.encode(text);
    return std::vector<std::int64_t>(ids.begin(), ids.end());
  });
}

Sequences Tokenizer::encode_texts(const std::vector<std::string>& texts,
                                  std::int64_t max_length) const {
  return translate_exceptions([&] {
    Sequences sequences;
    for (const std::string& text : texts)
      held(impl_, "tokenizer").add(sequences, text, nullptr, max_length);
    return sequences;
  });
}

Sequences Tokenizer::encode_pairs(const std::vector<std::pair<std::string, std::string>>& pairs,
                                  std::int64_t max_length) const {
  return translate_exceptions([&] {
    Sequences sequences;
    for (const auto& [first, second] : pairs)
      held(impl_, "tokenizer").add(sequences, first, &second, max_length);
    return sequences;
  });
}

std::int64_t Tokenizer::id(std::string_view token) const {
  return translate_exceptions(
      [&] { return std::int64_t{held(impl_, "tokenizer").tokenizer.token_id(token)}; });
}

std::string Tokenizer::token(std::int64_t id) const {
  return translate_exceptions([&] {
    if (id < 0 || id > std::numeric_limits<std::int32_t>::max())
      throw Error("the vocabulary has no token " + std::to_string(id));
    return held(impl_, "tokenizer").tokenizer.token(static_cast<std::int32_t>(id));
  });
}

std::int64_t Tokenizer::size() const {
  return static_cast<std::int64_t>(held(impl_, "tokenizer").tokenizer.vocabulary_size());
}

std::int64_t Tokenizer::model_size() const {
  return static_cast<std::int64_t>(held(impl_, "tokenizer").tokenizer.model_vocabulary_size());
}

}  // namespace bertcl
