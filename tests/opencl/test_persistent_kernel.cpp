// SPDX-License-Identifier: Apache-2.0
// Launches of many steps, each of which reads all that the step before it has written.
#include <array>
#include <bit>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "opencl/device/capabilities.hpp"
#include "opencl/launch/persistent_kernel.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/failing_opencl.hpp"
#include "tests/support/lacks.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::opencl {
namespace {

constexpr int kPoison = -1515870811;  // 0xa5a5a5a5

/// Two kernels of this test: ramp() writes value + 2 i, add_up() writes the scaled sum of all
/// inputs plus its own place.
class PersistentKernelTest : public ::testing::Test {
 protected:
  PersistentKernelTest() {
    folder_.write("ramp.cl",
                  "#include \"persistent/place.clh\"\n"
                  "KERNEL ramp(__global int* out, int value PLACE_PARAMETER) {\n"
                  "  const int3 at = PLACE.id, size = PLACE.size;\n"
                  "  const int i = (at.z * size.y + at.y) * size.x + at.x;\n"
                  "  out[i] = value + 2 * i;\n"
                  "}\n"
                  "MERGEABLE(ramp, (POINTER(0), INTEGER(1), STEP_PLACE))\n");
    folder_.write(
        "add_up.cl",
        "#include \"persistent/place.clh\"\n"
        "KERNEL add_up(__global const int* in, int count, float scale, __global int* out\n"
        "              PLACE_PARAMETER) {\n"
        "  int sum = 0;\n"
        "  for (int i = 0; i < count; i++) sum += in[i];\n"
        "  out[PLACE.id.x] = (int)(sum * scale) + PLACE.id.x;\n"
        "}\n"
        "MERGEABLE(add_up, (POINTER(0), INTEGER(1), FLOAT(2), POINTER(3), STEP_PLACE))\n"
        "__kernel void alone(__global int* out) { out[0] = 1; }\n");
  }

  /// Appends a step to `words`; `items` counts those of all steps.
  static void add_step(std::vector<std::uint64_t>& words, std::uint64_t& items,
                       std::uint64_t kernel, std::array<size_t, 3> grid,
                       std::vector<std::uint64_t> arguments) {
    append_step(words, {kernel, items, grid, std::move(arguments)});
    items += grid[0] * grid[1] * grid[2];
  }

  const tests::ScratchFolder folder_;
  const tests::ScopedVariable kernels_{"BERTCL_KERNELS", folder_.path().string()};
  const tests::ScopedVariable cache_{"BERTCL_CACHE", "off"};
  std::shared_ptr<Context> context_ = Context::create("cpu");
};

/// Those that run it: steps find their buffers by address.
class RunPersistentKernel : public PersistentKernelTest {
 protected:
  void SetUp() override {
    const std::string reason = tests::lacks(*context_, &Capabilities::persistent_kernel);
    if (!reason.empty()) GTEST_SKIP() << "the persistent kernel " << reason;
  }

  /// Runs the first step of `words`, one of ramp().
  static void launch_ramp(Context& context, const std::vector<std::uint64_t>& words,
                          const Buffer& arena) {
    Buffer steps = context.allocate(words.size() * sizeof(words[0]));
    steps.upload(words);
    Buffer state = context.allocate(kPersistentStateBytes);
    state.fill(0);
    const std::vector<Kernel> kernels{context.unbuilt_kernel("ramp", "ramp")};
    Kernel merged = persistent_kernel_of(context, kernels);
    merged.args(steps, state, arena, 0, 1);
    context.queue().launch(merged, {2, 1, 1}, {1, 1, 1}, "persistent");
    context.queue().finish();
  }
};

TEST_F(RunPersistentKernel, EachStepSeesAllOfTheStepBefore) {
  constexpr int kFirst = 7 * 5 * 3, kSecond = 64, kThird = 13;
  Buffer arena = context_->allocate((kFirst + kSecond + kThird) * sizeof(int));
  const std::uint64_t a = addresses_of(*context_, std::vector<const Buffer*>{&arena})[0];
  const std::uint64_t b = a + kFirst * sizeof(int), c = b + kSecond * sizeof(int);
  const auto half = std::bit_cast<std::uint32_t>(0.5f);
  std::vector<std::uint64_t> words(3 * kStepWords);  // steps that the launch leaves out
  std::uint64_t items = 0;
  add_step(words, items, 0, {7, 5, 3}, {a, static_cast<std::uint32_t>(-9)});
  add_step(words, items, 1, {kSecond, 1, 1}, {a, kFirst, half, b});
  add_step(words, items, 1, {0, 1, 1}, {0, kFirst, half, 0});
  add_step(words, items, 1, {kThird, 1, 1}, {b, kSecond, half, c});

  std::vector<int> expected(kFirst + kSecond + kThird);
  int sum = 0;
  for (int i = 0; i < kFirst; ++i) sum += expected[i] = 2 * i - 9;
  for (int i = 0; i < kSecond; ++i) expected[kFirst + i] = sum / 2 + i;
  sum = std::accumulate(&expected[kFirst], &expected[kFirst + kSecond], 0);
  for (int i = 0; i < kThird; ++i) expected[kFirst + kSecond + i] = sum / 2 + i;

  Buffer steps = context_->allocate(words.size() * sizeof(words[0]));
  steps.upload(words);
  Buffer state = context_->allocate(kPersistentStateBytes);
  state.fill(0);
  const std::vector<Kernel> kernels{context_->unbuilt_kernel("ramp", "ramp"),
                                    context_->unbuilt_kernel("add_up", "add_up")};
  // With one pause, groups leave whenever they have to wait.
  for (const Defines& defines :
       {Defines{}, Defines{{"PAUSES", 1}}, Defines{{"SHARES", 4}, {"LEAST", 1000}}}) {
    Kernel merged = persistent_kernel_of(*context_, kernels, defines);
    merged.args(steps, state, arena, 3, 4);
    for (const size_t groups : {1, 2, 3, 64, 1, 2}) {
      arena.fill(0xa5);
      context_->queue().launch(merged, {groups, 1, 1}, {1, 1, 1}, "persistent");
      EXPECT_EQ(arena.download<int>(), expected) << groups << " groups";
      EXPECT_EQ(state.download<int>(), std::vector<int>(kPersistentStateBytes / sizeof(int)));
    }
  }
}

TEST_F(RunPersistentKernel, LaunchesEndAtTheirCount) {
  Buffer arena = context_->allocate(4 * sizeof(int));
  const std::uint64_t a = addresses_of(*context_, std::vector<const Buffer*>{&arena})[0];
  std::vector<std::uint64_t> words;
  std::uint64_t items = 0;
  add_step(words, items, 0, {3, 1, 1}, {a, 5});
  add_step(words, items, 0, {4, 1, 1}, {a, 50});
  arena.fill(0xa5);
  launch_ramp(*context_, words, arena);
  EXPECT_EQ(arena.download<int>(), (std::vector<int>{5, 7, 9, kPoison}));
}

TEST_F(PersistentKernelTest, AMergeableKernelRunsAloneToo) {
  Buffer out = context_->allocate(6 * sizeof(int));
  Kernel kernel = context_->kernel("ramp", "ramp");
  kernel.args(out, 1);
  context_->queue().launch(kernel, {3, 2, 1}, {1, 1, 1}, "alone");
  EXPECT_EQ(out.download<int>(), (std::vector<int>{1, 3, 5, 7, 9, 11}));
}

TEST_F(PersistentKernelTest, TakesAsManyArgumentsAsAStepHasWords) {
  std::vector<std::uint64_t> words;
  append_step(words, {0, 0, {1, 1, 1}, std::vector<std::uint64_t>(kStepWords - kStepHeader)});
  EXPECT_EQ(words.size(), kStepWords);
  const std::vector<std::uint64_t> more(kStepWords - kStepHeader + 1);
  EXPECT_THROW(append_step(words, {0, 0, {1, 1, 1}, more}), Error);
}

TEST_F(PersistentKernelTest, APartThatCannotBeCompiledIsNamed) {
  folder_.write("broken.cl", "int undeclared() { return nowhere; }\nMERGEABLE(broken, ())\n");
  const std::vector<Kernel> kernels{context_->unbuilt_kernel("ramp", "ramp"),
                                    context_->unbuilt_kernel("broken", "broken")};
  EXPECT_ERROR(
      AllOf(HasSubstr("compiling, as a part of 'persistent', 'broken.cl'"), HasSubstr("nowhere")),
      persistent_kernel_of(*context_, kernels).build());
}

// Linked programs are stored, too, and do the same when they come from there.
TEST_F(RunPersistentKernel, ComesFromTheProgramCache) {
  const tests::ScopedVariable cache("BERTCL_CACHE", (folder_.path() / "cache").string());
  const tests::ScopedVariable debug("BERTCL_CACHE_DEBUG", "1");
  const auto run = [] {
    testing::internal::CaptureStderr();
    {
      const auto context = Context::create("cpu");
      Buffer out = context->allocate(5 * sizeof(int));
      std::vector<std::uint64_t> words;
      append_step(
          words,
          {0, 0, {5, 1, 1}, {addresses_of(*context, std::vector<const Buffer*>{&out})[0], 100}});
      launch_ramp(*context, words, out);
      EXPECT_EQ(out.download<int>(), (std::vector<int>{100, 102, 104, 106, 108}));
      context->store_programs(60);
    }
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(run(), HasSubstr("persistent: stored"));
  EXPECT_THAT(run(), HasSubstr("persistent: loaded"));
}

TEST_F(RunPersistentKernel, AddressesAreThoseOfTheBuffers) {
  const size_t align = context_->info().base_align_bytes;
  Buffer whole = context_->allocate(20 * align);
  const Buffer none;
  std::vector<Buffer> views;
  for (size_t i = 0; i < 20; ++i) views.push_back(whole.view(i * align, align));
  std::vector<const Buffer*> asked{&whole, &none};
  for (const Buffer& view : views) asked.push_back(&view);
  const std::vector<std::uint64_t> found = addresses_of(*context_, asked);
  ASSERT_EQ(found.size(), asked.size());
  EXPECT_NE(found[0], 0u);
  EXPECT_EQ(found[1], 0u);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(found[2 + i], found[0] + i * align);
  const int handlers = tests::exit_handlers();
  EXPECT_GT(handlers, 0);
  addresses_of(*context_, asked);
  EXPECT_EQ(tests::exit_handlers(), handlers);
}

}  // namespace
}  // namespace bertcl::opencl
