// SPDX-License-Identifier: Apache-2.0
// Routes that others lead to, in the files of their protocols.
#pragma once
#include "serve/service.hpp"

namespace bertcl::serve {

// routes_scores.cpp
Reply predict_route(Context& context);
Reply rerank_route(Context& context);
// routes_tokens.cpp
Reply tokenize_route(Context& context);
Reply decode_route(Context& context);
// routes_answer.cpp
Reply answer_route(Context& context);

}  // namespace bertcl::serve
