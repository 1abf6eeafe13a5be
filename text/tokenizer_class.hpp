// SPDX-License-Identifier: Apache-2.0
// The class of a tokenizer in transformers, which says how its files are read.
#pragma once
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

namespace bertcl::text {

/// The class that the files beside a vocabulary name, as AutoTokenizer of transformers 5.23.0 finds
/// it: "tokenizer_class" of tokenizer_config.json, else of config.json, else its "model_type" where
/// such models have a tokenizer of their own. "" where the files name none.
std::string tokenizer_class_beside(const std::filesystem::path& vocabulary);

/// The class of transformers 5 for files of any tokenizer.
inline constexpr std::string_view kTokenizersBackend = "TokenizersBackend";

/// True for a class that says nothing of a tokenizer: PreTrainedTokenizerFast and the like.
bool is_generic(std::string_view tokenizer_class);

/// Whether a class, without "Tokenizer" and "Fast", is one of these, generic or "".
bool may_be_one_of(std::string_view tokenizer_class, std::initializer_list<std::string_view> known);

}  // namespace bertcl::text
