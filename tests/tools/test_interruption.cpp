// SPDX-License-Identifier: Apache-2.0
// How interrupted work ends.
#include "tools/terminal/interruption.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "bertcl/error.hpp"

namespace bertcl::tools {
namespace {

TEST(InterruptionDeathTest, TheSignalEndsTheProcess) {
  const auto work = [] {
    std::raise(SIGTERM);
    throw_if_interrupted();
    return 0;
  };
  EXPECT_EXIT(run_interruptibly(work), testing::KilledBySignal(SIGTERM), "");
}

TEST(InterruptionDeathTest, AnErrorThatFollowsFromTheSignalIsNotTold) {
  const auto work = []() -> int {
    std::raise(SIGINT);
    throw Error("the driver's compiler lost its file");
  };
  EXPECT_EXIT(run_interruptibly(work), testing::KilledBySignal(SIGINT), "^$");
}

TEST(Interruption, OtherErrorsPass) {
  const auto work = []() -> int { throw Error("no signal"); };
  EXPECT_THROW(run_interruptibly(work), Error);
}

}  // namespace
}  // namespace bertcl::tools
