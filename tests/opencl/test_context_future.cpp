// SPDX-License-Identifier: Apache-2.0
// Devices that are opened while other work is done, and whose error is told first.
#include "bertcl/error.hpp"
#include "opencl/context.hpp"
#include "opencl/context_future.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::opencl {
namespace {

TEST(ContextFuture, IsOfNoDeviceUnlessOneIsNamed) {
  EXPECT_FALSE(ContextFuture());
  EXPECT_FALSE(ContextFuture(std::shared_ptr<Context>()));
  EXPECT_EQ(ContextFuture().get(), nullptr);
  EXPECT_EQ(ContextFuture().meanwhile([] { return 7; }), 7);
  EXPECT_EQ(error_of([] { ContextFuture().meanwhile([]() -> int { throw Error("it fails"); }); }),
            "it fails");
  const auto context = Context::create("cpu");
  EXPECT_EQ(ContextFuture(context).get(), context);
}

TEST(ContextFuture, CopiesShareTheContextAndLetGoOfItTogether) {
  ContextFuture first = ContextFuture::open("cpu");
  ContextFuture second = first;
  const std::weak_ptr<Context> context = first.get();
  EXPECT_EQ(second.get(), context.lock());
  EXPECT_EQ(context.lock()->info().type, "cpu");
  first = {};
  EXPECT_FALSE(context.expired());
  second = {};
  EXPECT_TRUE(context.expired());
}

TEST(ContextFuture, NobodyHasToAskForIt) {
  ContextFuture::open("cpu");
  ContextFuture::open("no such device");
}

TEST(ContextFuture, TheErrorOfTheDeviceComesFirst) {
  const auto fail = []() -> int { throw Error("the work fails"); };
  const ContextFuture absent = ContextFuture::open("no such device");
  EXPECT_EQ(absent.meanwhile([] { return 7; }), 7);
  for (int time = 0; time < 2; ++time) {
    EXPECT_ERROR(HasSubstr("'no such device'"), absent.get());
    EXPECT_ERROR(HasSubstr("'no such device'"), absent.meanwhile(fail));
  }
  EXPECT_EQ(error_of([&] { ContextFuture::open("cpu").meanwhile(fail); }), "the work fails");
}

}  // namespace
}  // namespace bertcl::opencl
