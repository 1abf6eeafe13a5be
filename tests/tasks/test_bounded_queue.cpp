// SPDX-License-Identifier: Apache-2.0
// The queue between the stages.
#include "tasks/bounded_queue.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace bertcl::tasks {
namespace {

TEST(BoundedQueue, HoldsBackTheProducerAndDrainsAfterClose) {
  BoundedQueue<int> queue(2);
  int pushed = 0;
  std::thread producer([&] {
    for (int i = 0; i < 1000; ++i) pushed += queue.push(i) ? 1 : 0;
    queue.close();
  });
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(queue.pop(), i);
  EXPECT_EQ(queue.pop(), std::nullopt);
  producer.join();
  EXPECT_EQ(pushed, 1000);
  EXPECT_FALSE(queue.push(1)) << "closed";
}

}  // namespace
}  // namespace bertcl::tasks
