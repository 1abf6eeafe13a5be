// SPDX-License-Identifier: Apache-2.0
// Routes that others lead to, in the files of their protocols.
#pragma once
#include "serve/service.hpp"

namespace bertcl::serve {

// routes_scores.cpp
/// Classes of the texts in a body, which is gone then; with `always_batch` those of one text are a
/// list in a list, too.
HttpResponse predict(Context& context, const text::JsonNode& body, bool always_batch);
HttpResponse rerank_route(Context& context);
// routes_tokens.cpp
HttpResponse tokenize_route(Context& context);
HttpResponse decode_route(Context& context);
// routes_answer.cpp
HttpResponse answer_route(Context& context);

}  // namespace bertcl::serve
