// SPDX-License-Identifier: Apache-2.0
// The error of a regular expression that takes too long.
#pragma once
#include "bertcl/error.hpp"

namespace bertcl::text {

/// A text, which the message quotes, for which a regular expression of the tokenizer takes too long
/// or too much memory.
struct SearchError : Error {
  using Error::Error;
};

}  // namespace bertcl::text
