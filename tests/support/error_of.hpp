// SPDX-License-Identifier: Apache-2.0
// What a refusal says.
#pragma once
#include <string>

#include "bertcl/error.hpp"

namespace bertcl::tests {

/// Message of the Error that `action` throws; other exceptions pass.
template <typename Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no Error was thrown";
}

}  // namespace bertcl::tests
