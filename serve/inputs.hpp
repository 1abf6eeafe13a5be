// SPDX-License-Identifier: Apache-2.0
// Texts of requests, and their vectors.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/service.hpp"

namespace bertcl::serve {

/// A text, or its tokens, special ones included.
struct Input {
  std::optional<std::string> text;
  std::vector<std::int64_t> ids = {};
};

/// A text, a list of ids, or a list of both. They are counted before they are read: throws
/// HttpError 400 or 413.
std::vector<Input> read_inputs(const Context& context, const text::JsonNode& node);

/// Texts of a list, counted like inputs; of Cohere's and Jina's clients also objects that hold one.
std::vector<std::string> read_texts(const Context& context, const text::JsonNode& node,
                                    bool may_be_objects = false);

/// A member that is `min` or more; none if it is absent.
std::optional<std::int64_t> read_count(const text::JsonNode& body, const char* name,
                                       std::int64_t min = 1);

/// Columns of what a model gives for each text; nothing where its file does not say.
std::optional<std::int64_t> columns_of(const ModelSetup& setup);

/// The prompt that the body names, else the model's own. Throws Error, or HttpError 422, for one
/// that is unknown or not supported.
std::string prompt_of(const Model& model, const text::JsonNode& body);

struct EmbedRequest {
  std::vector<Input> inputs;
  std::string prompt;
  Truncation truncation;
  std::optional<bool> normalize;  ///< none: as the model does it
  std::optional<std::int64_t> dimensions;
};

/// Reads the texts in `member`, and prompt, truncation and dimensions.
EmbedRequest read_embed_request(const Context& context, const Model& model,
                                const text::JsonNode& body, const char* member);

/// The sequences of all inputs. Throws HttpError 400 or 413.
std::vector<Sequence> sequences_of(Context& context, const Model& model,
                                   const EmbedRequest& request);

/// A vector for each input: what `bertcl embed` gives, cut and normalized as asked for.
std::vector<Values> embed(Context& context, Model& model, const EmbedRequest& request);

/// A vector for each token of each sequence, one after the other.
std::vector<Values> embed_tokens(Context& context, Model& model, std::vector<Sequence> sequences);

/// Throws HttpError 400 for an empty text, or a pair of them, as text-embeddings-inference does.
void check_not_empty(std::string_view text, std::string_view second = {});

/// Throws HttpError 424 if there is NaN or infinity.
void check_finite(const std::vector<Values>& values);

}  // namespace bertcl::serve
