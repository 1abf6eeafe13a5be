// SPDX-License-Identifier: Apache-2.0
// Options whose value is a text for the model.
#pragma once
#include <string>

#include "support/cli_forward.hpp"

namespace bertcl::tools {

/// Refuses invalid UTF-8, as files of texts are refused: the tokenizer would drop it.
CLI::Option* text_option(CLI::Option* option);

/// The same, and a blank text, with the message `blank`.
CLI::Option* text_option(CLI::Option* option, const std::string& blank);

/// What is wrong with a text; "" for nothing.
std::string text_fault(const std::string& text);

}  // namespace bertcl::tools
