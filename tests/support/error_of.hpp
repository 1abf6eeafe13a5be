// SPDX-License-Identifier: Apache-2.0
// What a refusal says.
#pragma once
#include <gmock/gmock.h>

#include <string>

#include "bertcl/error.hpp"

namespace bertcl::tests {

inline const std::string kNoError = "no Error was thrown";

/// Message of the Error that `action` throws; other exceptions pass.
template <typename Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return kNoError;
}

/// Of statements that have to throw an Error.
#define EXPECT_ERROR(matcher, ...)                             \
  EXPECT_THAT(::bertcl::tests::error_of([&] { __VA_ARGS__; }), \
              ::testing::AllOf(::testing::Ne(::bertcl::tests::kNoError), matcher))

}  // namespace bertcl::tests
