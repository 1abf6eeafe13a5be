// SPDX-License-Identifier: Apache-2.0
// GoogleTest, the names of its matchers in every namespace of the project, and what a refusal says.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "bertcl/error.hpp"

namespace bertcl {

using testing::AllOf, testing::AnyOf, testing::Not;
using testing::Contains, testing::Each, testing::ElementsAre, testing::ElementsAreArray;
using testing::ContainsRegex, testing::EndsWith, testing::HasSubstr, testing::MatchesRegex;
using testing::DoubleEq, testing::DoubleNear, testing::FloatEq, testing::FloatNear, testing::IsNan;
using testing::Field, testing::Key, testing::Pair, testing::Pointwise, testing::StartsWith;
using testing::IsEmpty, testing::IsSubsetOf, testing::IsSupersetOf;
using testing::UnorderedElementsAre, testing::UnorderedElementsAreArray;

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
#define EXPECT_ERROR(matcher, ...)                      \
  EXPECT_THAT(::bertcl::error_of([&] { __VA_ARGS__; }), \
              ::testing::AllOf(::testing::Ne(::bertcl::kNoError), matcher))

/// Of those that have to throw an Error of this code.
#define EXPECT_ERROR_CODE(expected, ...)                                \
  EXPECT_THAT([&] { __VA_ARGS__; }, ::testing::Throws<::bertcl::Error>( \
                                        ::testing::Property(&::bertcl::Error::code, expected)))

}  // namespace bertcl
