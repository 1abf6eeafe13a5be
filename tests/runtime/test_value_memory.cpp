// SPDX-License-Identifier: Apache-2.0
// Values in device memory: apart while they live, counted while they are held.
#include "runtime/value_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "opencl/queue.hpp"
#include "runtime/session.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::runtime {
namespace {

class ValueMemories : public testing::Test {
 protected:
  static ir::Bindings sizes(std::int64_t n) { return {{"n", n}}; }

  Session session_ = Session::compile(ir::parse(R"(graph g(%x: f32[n, 64], %z: f32[n, 64]) {
  %a: f32[n, 64] = Softmax(%x) {axis = -1}
  %b: f32[64, n] = Transpose(%a) {perm = [1, 0]}
  %c: f32[n, n] = MatMul(%z, %b)
  %y: f32[n, 64] = MatMul(%c, %a)
  return %y as y
})"));
  const plan::Plan& plan_ = session_.plan();
  Arenas arenas_;
};

TEST_F(ValueMemories, GiveEachValueOfAStepBytesOfItsOwn) {
  ValueMemory memory(plan_, 0, arenas_);
  for (const std::int64_t n : {3, 100, 1, 37}) {
    memory.place(sizes(n));
    for (const plan::Step& step : plan_.steps) {
      std::vector<int> slots;
      for (const plan::Argument& a : step.arguments) {
        if (const auto* r = std::get_if<plan::Reads>(&a)) slots.push_back(r->slot);
        if (const auto* w = std::get_if<plan::Writes>(&a)) slots.push_back(w->slot);
      }
      for (const int slot : slots) memory.buffer(slot).fill(static_cast<std::uint8_t>(slot));
      for (const int slot : slots) {
        const auto bytes = memory.buffer(slot).download<std::uint8_t>();
        EXPECT_GE(std::ssize(bytes), 4 * n) << step.name;
        EXPECT_EQ(std::ranges::count(bytes, slot), std::ssize(bytes)) << step.name << ", " << n;
      }
    }
  }
}

TEST_F(ValueMemories, BringStagedInputsToTheirSlots) {
  ValueMemory memory(plan_, 0, arenas_);
  for (const std::int64_t n : {2, 80, 5}) {
    memory.place(sizes(n));
    for (const plan::Input& in : plan_.inputs) {
      EXPECT_EQ(std::ssize(memory.staging(in.slot)), n * 64 * 4);
      std::ranges::fill(memory.staging(in.slot), static_cast<std::byte>(n + in.slot));
    }
    memory.upload();
    for (const plan::Input& in : plan_.inputs)
      EXPECT_THAT(memory.buffer(in.slot).download<std::uint8_t>(), Each(n + in.slot));
  }
}

TEST_F(ValueMemories, CountWhatTheyHoldUntilTheyEnd) {
  const std::int64_t held = arenas_.bytes;
  {
    ValueMemory one(plan_, 0, arenas_), other(plan_, 0, arenas_);
    one.place(sizes(90));
    const std::int64_t bytes = one.bytes();
    EXPECT_EQ(bytes, other.bytes(sizes(90)));
    const std::int64_t larger = arenas_.bytes;
    EXPECT_LE(larger, bytes);
    EXPECT_GT(larger, bytes * 3 / 4);  // buffers of their own leave out what aligns them
    one.place(sizes(9));
    EXPECT_LT(one.bytes(), bytes);
    EXPECT_EQ(arenas_.bytes, larger);
    other.place(sizes(90));
    EXPECT_EQ(arenas_.bytes, 2 * larger);
  }
  EXPECT_EQ(arenas_.bytes, held);
}

TEST_F(ValueMemories, AskOnceForWhatIsIdleAndAreRefusedThen) {
  ValueMemory large(plan_, 0, arenas_);
  const std::int64_t bytes = large.bytes(sizes(60));
  const std::int64_t limit = constant_bytes(plan_) + bytes * 3 / 2;
  auto idle = std::make_unique<ValueMemory>(plan_, limit, arenas_);
  ValueMemory memory(plan_, limit, arenas_);
  int asked = 0;
  arenas_.free_idle = [&] { ++asked; };
  idle->place(sizes(60));
  EXPECT_ERROR_CODE(ErrorCode::out_of_memory, memory.place(sizes(60)));
  EXPECT_EQ(asked, 1);
  EXPECT_LE(arenas_.bytes, limit);
  arenas_.free_idle = [&] { idle.reset(); };
  memory.place(sizes(60));
  EXPECT_FALSE(idle);
  EXPECT_ERROR(AllOf(HasSubstr("exceed the limit of " + std::to_string(limit)), HasSubstr("'c'")),
               memory.place(sizes(400)));
  memory.place(sizes(60));
}

TEST_F(ValueMemories, SayWhereTheyCountOneValueAlone) {
  const std::int64_t weights = constant_bytes(plan_);
  const std::int64_t all = ValueMemory(plan_, 0, arenas_).bytes(sizes(60));
  ValueMemory little(plan_, weights + 1, arenas_), almost(plan_, weights + all - 1, arenas_);
  EXPECT_ERROR(HasSubstr("bytes of weights and at least "), little.place(sizes(60)));
  EXPECT_ERROR(HasSubstr(fmt::format("bytes of weights and {} of intermediate", all)),
               almost.place(sizes(60)));
}

}  // namespace
}  // namespace bertcl::runtime
