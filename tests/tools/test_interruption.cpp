// SPDX-License-Identifier: Apache-2.0
// How interrupted work ends.
#include "tools/terminal/interruption.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "bertcl/error.hpp"
#include "tools/container.hpp"

namespace bertcl::tools {
namespace {

int terminated() {
  std::raise(SIGTERM);
  throw_if_interrupted();
  return 0;
}

TEST(InterruptionDeathTest, TheSignalEndsTheProcess) {
  EXPECT_EXIT(run_interruptibly(terminated), testing::KilledBySignal(SIGTERM), "");
}

TEST(InterruptionDeathTest, AnErrorThatFollowsFromTheSignalIsNotTold) {
  const auto work = []() -> int {
    std::raise(SIGINT);
    throw Error("the driver's compiler lost its file");
  };
  EXPECT_EXIT(run_interruptibly(work), testing::KilledBySignal(SIGINT), "^$");
}

// As the first process of a container, which ignores signals whose action is the default one.
TEST(InterruptionDeathTest, AProcessThatSignalsDoNotEndHasTheCodeOfOne) {
  const auto as_first_process = [] {
    end_by_signals();
    return run_interruptibly(terminated);
  };
  EXPECT_EXIT(as_first_process(), testing::ExitedWithCode(128 + SIGTERM), "");
  const auto idle = [] {
    end_by_signals();
    std::raise(SIGTERM);
  };
  EXPECT_EXIT(idle(), testing::ExitedWithCode(128 + SIGTERM), "");
}

TEST(Interruption, OtherErrorsPass) {
  const auto work = []() -> int { throw Error("no signal"); };
  EXPECT_THROW(run_interruptibly(work), Error);
}

}  // namespace
}  // namespace bertcl::tools
