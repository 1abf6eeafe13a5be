// SPDX-License-Identifier: Apache-2.0
// The pre-tokenizers of a tokenizer.json: they split the text into words.
#pragma once
#include "text/pipeline/normalizers.hpp"

namespace bertcl::text {

std::unique_ptr<Stage> bert_pre_tokenizer();

/// Where `Metaspace` puts its character before a part: nowhere, before the first, before all.
enum class PrependScheme { never, first, always };
std::unique_ptr<Stage> metaspace(std::string replacement, PrependScheme scheme, bool splits);

/// Splits at white space.
std::unique_ptr<Stage> whitespace_split();

/// Adds the stages of a node "pre_tokenizer". Throws Error by name on a kind that is not supported.
void add_pre_tokenizers(const JsonNode& node, Stages& stages);

}  // namespace bertcl::text
