// SPDX-License-Identifier: Apache-2.0
// GEMMs on the caller's OpenCL objects: the numbers, against plain loops.
#include <chrono>
#include <thread>

#include "tests/api/gemm_case.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/variants_before.hpp"

namespace bertcl::tests {
namespace {

constexpr std::uint8_t kPoison = 0xA5;

WeightsPointer make_weights(const ContextPointer& context, const GemmCase& c) {
  std::vector<std::int8_t> given = c.w;
  if (c.transposed)
    for (int i = 0; i < c.k; ++i)
      for (int j = 0; j < c.n; ++j)
        given[static_cast<std::size_t>(j) * c.k + i] = c.w[static_cast<std::size_t>(i) * c.n + j];
  bertcl_gemm_weights_desc desc{};
  desc.size = sizeof(desc), desc.k = c.k, desc.n = c.n, desc.transposed = c.transposed;
  Mem buffer;
  if (c.weights_in_buffer) {
    const std::size_t offset = callers_device().align;
    std::vector<std::int8_t> all(offset, 77);
    all.insert(all.end(), given.begin(), given.end());
    buffer = callers_device().buffer(all);
    desc.buffer = buffer.get(), desc.offset = offset;
  } else {
    desc.data = given.data();
  }
  if (!c.w_scales.empty()) desc.scales = c.w_scales.data();
  desc.scale_count = static_cast<std::int64_t>(c.w_scales.size());
  if (!c.w_zeros.empty()) desc.zero_points = c.w_zeros.data();
  desc.zero_point_count = static_cast<std::int64_t>(c.w_zeros.size());
  bertcl_gemm_weights* weights = nullptr;
  EXPECT_EQ(bertcl_gemm_weights_create(context.get(), &desc, &weights), BERTCL_OK)
      << bertcl_last_error();
  std::fill(given.begin(), given.end(), std::int8_t{55});  // prepacked: it may change
  return WeightsPointer(weights);
}

GemmPointer make_gemm(const WeightsPointer& weights, const GemmCase& c) {
  bertcl_gemm* gemm = nullptr;
  EXPECT_EQ(create_gemm(weights, c, &gemm), BERTCL_OK) << bertcl_last_error();
  return GemmPointer(gemm);
}

/// One call with poison before and after `out`.
struct GemmCall {
  GemmCall(bertcl_gemm* gemm, const GemmCase& c, cl_command_queue queue, std::size_t a_offset = 0,
           std::size_t out_offset = 0, cl_event after = nullptr)
      : offset(out_offset), bytes(static_cast<std::size_t>(c.m) * c.n * c.out_size()) {
    std::vector<std::uint8_t> shifted(a_offset, kPoison);
    shifted.insert(shifted.end(), c.a.begin(), c.a.end());
    a = callers_device().buffer(shifted);
    out = callers_device().buffer(std::vector<std::uint8_t>(offset + bytes + 64, kPoison));
    if (!c.row_scales.empty()) row_scales = callers_device().buffer(c.row_scales);
    bertcl_gemm_args args{};
    args.size = sizeof(args), args.m = c.m;
    args.a = a.get(), args.a_offset = a_offset, args.out = out.get(), args.out_offset = offset;
    args.row_scales = row_scales.get();
    cl_event event = nullptr;
    status =
        bertcl_gemm_enqueue(gemm, queue, &args, after ? 1 : 0, after ? &after : nullptr, &event);
    EXPECT_EQ(status, BERTCL_OK) << bertcl_last_error() << " " << c.text();
    done = {event, clReleaseEvent};
    clFlush(queue);
  }
  /// Waits, and compares every byte of out.
  void check(const GemmCase& c) const {
    if (status != BERTCL_OK) return;
    cl_event event = done.get();
    ASSERT_EQ(clWaitForEvents(1, &event), CL_SUCCESS);
    const auto all = callers_device().read(out);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool is_outside = i < offset || i >= offset + bytes;
      ASSERT_TRUE(!is_outside || all[i] == kPoison)
          << "written outside of out, at byte " << i << ": " << c.text();
    }
    for (int row = 0; row < c.m; ++row)
      for (int column = 0; column < c.n; ++column) {
        const std::uint8_t* at =
            &all[offset + (static_cast<std::size_t>(row) * c.n + column) * c.out_size()];
        ASSERT_NO_FATAL_FAILURE(compare(c, row, column, at));
      }
  }
  static void compare(const GemmCase& c, int row, int column, const std::uint8_t* at) {
    const auto where = [&] {
      return " at row " + std::to_string(row) + " column " + std::to_string(column) + ": " +
             c.text();
    };
    if (c.out_type == BERTCL_I32) {
      std::int32_t found;
      std::memcpy(&found, at, 4);
      ASSERT_EQ(found, c.sum(row, column)) << where();
      return;
    }
    const double x = c.linear(row, column), y = c.activated(x);
    // Eight units in the last place of erf and tanh, which 1 + erf(x) may leave of a small result.
    const bool is_exact =
        c.activation == BERTCL_ACTIVATION_NONE || c.activation == BERTCL_ACTIVATION_RELU;
    const double bound = is_exact ? 0 : 1e-6 * std::abs(x) + 1e-7;
    if (c.out_type == BERTCL_F32) {
      float found;
      std::memcpy(&found, at, 4);
      ASSERT_LE(std::abs(found - y), bound) << found << " for " << y << where();
      return;
    }
    const double found = c.out_type == BERTCL_I8 ? static_cast<std::int8_t>(*at) : *at;
    ASSERT_GE(found, c.quantized(y - bound, column)) << where();
    ASSERT_LE(found, c.quantized(y + bound, column)) << where();
  }

  std::size_t offset, bytes;
  bertcl_status status;
  Mem a, out, row_scales;
  std::shared_ptr<_cl_event> done;
};

void check_case(const ContextPointer& context, const GemmCase& c, std::size_t a_offset = 0,
                std::size_t out_offset = 0) {
  const WeightsPointer weights = make_weights(context, c);
  ASSERT_TRUE(weights) << c.text();
  const GemmPointer gemm = make_gemm(weights, c);
  ASSERT_TRUE(gemm) << c.text();
  GemmCall(gemm.get(), c, callers_device().queue.get(), a_offset, out_offset).check(c);
}

constexpr int kOutTypes[] = {BERTCL_I32, BERTCL_F32, BERTCL_U8, BERTCL_I8};

/// Tiles of 6 x 64 and their neighbours, and what is odd, prime or 1.
void check_random_cases(const char* disabled, unsigned count) {
  const ContextPointer context = make_context(disabled);
  constexpr int ms[] = {1, 5, 6, 7, 13, 47, 130}, ns[] = {1, 2, 63, 64, 65, 97, 128},
                ks[] = {1, 2, 3, 5, 31, 64, 131};
  std::mt19937 random(7);
  for (unsigned i = 0; i < count; ++i) {
    const int m = ms[random() % 7], n = ns[random() % 7], k = ks[random() % 7];
    const int a_type = i % 2 ? BERTCL_I8 : BERTCL_U8;
    const GemmCase c =
        random_case(m, n, k, a_type, kOutTypes[i / 2 % 4], static_cast<int>(i / 8 % 5), i);
    if (c.out_type == BERTCL_I32) {
      GemmCase sums = c;
      sums.activation = BERTCL_ACTIVATION_NONE;
      ASSERT_NO_FATAL_FAILURE(check_case(context, sums));
    } else {
      ASSERT_NO_FATAL_FAILURE(check_case(context, c));
    }
  }
}

TEST(Gemm, AgreesWithPlainLoops) { check_random_cases(nullptr, 160); }

TEST(Gemm, AgreesWithPlainLoopsInPortableKernels) {
  check_random_cases(s8_variants_before("portable").c_str(), 80);
}

TEST(Gemm, AgreesWithPlainLoopsInTheReference) {
  check_random_cases(s8_variants_before("ref").c_str(), 80);
}

bertcl_gemm_info info_of(const GemmPointer& gemm, std::int64_t m) {
  bertcl_gemm_info info{};
  info.size = sizeof(info);
  EXPECT_EQ(bertcl_gemm_get_info(gemm.get(), m, &info), BERTCL_OK);
  return info;
}

TEST(Gemm, TilesOfWorkGroupsFollowTheRows) {
  const ContextPointer context = make_context(s8_variants_before("dot4").c_str());
  GemmCase c = random_case(1, 130, 33, BERTCL_U8, BERTCL_I32, 0, 3);
  const WeightsPointer weights = make_weights(context, c);
  const GemmPointer gemm = make_gemm(weights, c);
  EXPECT_EQ(std::string(info_of(gemm, 1 << 24).variant).substr(0, 4), "dot4");
  for (const int m : {1, 33, 129}) {
    const GemmCase rows = random_case(m, 130, 33, BERTCL_U8, BERTCL_I32, 0, 3);
    GemmCase all = c;
    all.m = m, all.a = rows.a;
    GemmCall(gemm.get(), all, callers_device().queue.get()).check(all);
  }
}

/// The epilogue is compiled in, and may take more registers than that of the weights' trial.
void check_refused_epilogues() {
  const tests::ScopedVariable units("OTHER_UNITS", "64");  // so that few rows take smaller tiles
  const GemmCase c = random_case(70, 130, 66, BERTCL_U8, BERTCL_U8, BERTCL_ACTIVATION_GELU, 3);
  const ContextPointer context = make_context(nullptr);
  const WeightsPointer weights = make_weights(context, c);
  const std::string smaller = info_of(make_gemm(weights, c), 1).variant;
  ASSERT_NE(smaller, "dot4");
  {
    const tests::ScopedVariable refused("OTHER_LAUNCH", "-54 gemm_s8/-DTILE_M=32");
    const GemmPointer gemm = make_gemm(weights, c);
    GemmCall(gemm.get(), c, callers_device().queue.get()).check(c);
    EXPECT_STRNE(info_of(gemm, 1).variant, smaller.c_str());
  }
  for (const std::string status : {"-5", "-54"}) {
    const tests::ScopedVariable refused("OTHER_LAUNCH", status + " gemm_s8/-DOUT_TYPE=1");
    bertcl_gemm* gemm = nullptr;
    EXPECT_EQ(create_gemm(weights, c, &gemm), BERTCL_DEVICE);
    EXPECT_THAT(bertcl_last_error(),
                testing::HasSubstr("with this epilogue: the driver refuses its launch"));
  }
}

/// Kernels that a GPU's driver does not run, as tests/support/other_device.cpp refuses them.
TEST(Gemm, TakesTheNextVariantWhereTheDriverRefusesOne) {
  cl_device_type type = 0;
  clGetDeviceInfo(callers_device().device, CL_DEVICE_TYPE, sizeof(type), &type, nullptr);
  if (type != CL_DEVICE_TYPE_GPU)
    GTEST_SKIP() << "drivers of CPUs refuse nothing; runs in test_api_gpu";
  const GemmCase c = random_case(70, 130, 66, BERTCL_U8, BERTCL_I32, 0, 3);
  for (const auto& [setting, value] : {std::pair{"OTHER_LAUNCH", "-54 gemm_s8:256"},
                                       {"OTHER_BUILD", "-11 b_tile"},
                                       {"OTHER_KERNEL_GROUP", "64"}}) {
    const tests::ScopedVariable refused(setting, value);
    const ContextPointer context = make_context(nullptr);
    const WeightsPointer weights = make_weights(context, c);
    const GemmPointer gemm = make_gemm(weights, c);
    GemmCall(gemm.get(), c, callers_device().queue.get()).check(c);
    const bertcl_gemm_info info = info_of(gemm, c.m);
    EXPECT_STREQ(info.variant, "ref") << value;
    EXPECT_THAT(info.why_not_faster,
                AnyOf(HasSubstr("the driver refuses its"), HasSubstr("in work-groups of up to 64")))
        << value;
  }
  ASSERT_NO_FATAL_FAILURE(check_refused_epilogues());
}

TEST(Gemm, NoticesAWrongZeroPoint) {
  const ContextPointer context = make_context();
  GemmCase c = random_case(9, 50, 77, BERTCL_U8, BERTCL_I32, 0, 5);
  const WeightsPointer weights = make_weights(context, c);
  const GemmPointer gemm = make_gemm(weights, c);
  const GemmCall run(gemm.get(), c, callers_device().queue.get());
  clFinish(callers_device().queue.get());
  const auto bytes = callers_device().read(run.out);
  std::int32_t found;
  std::memcpy(&found, bytes.data(), 4);
  ASSERT_EQ(found, c.sum(0, 0));
  c.a_zero ^= 1;
  EXPECT_NE(found, c.sum(0, 0));
}

TEST(Gemm, SumsAreExactAtTheLimitsOfDepth) {
  const ContextPointer context = make_context();
  GemmCase c{2, 3, 65793, BERTCL_U8};
  c.a.assign(2 * 65793, 255), c.w.assign(3 * 65793, -128);
  check_case(context, c);
  GemmCase with_zeros{2, 3, 33025, BERTCL_U8};
  with_zeros.a.assign(2 * 33025, 255), with_zeros.w.assign(3 * 33025, -128);
  with_zeros.w_zeros = {127};
  check_case(context, with_zeros);
}

TEST(Gemm, OneServesAnyNumberOfRows) {
  const ContextPointer context = make_context();
  GemmCase c = random_case(130, 65, 96, BERTCL_I8, BERTCL_F32, BERTCL_ACTIVATION_RELU, 8);
  c.row_scales.clear();
  const WeightsPointer weights = make_weights(context, c);
  const GemmPointer gemm = make_gemm(weights, c);
  for (int m = 1; m <= 130; m += 3) {
    GemmCase rows = c;
    rows.m = m, rows.a.resize(static_cast<std::size_t>(m) * c.k);
    ASSERT_NO_FATAL_FAILURE(GemmCall(gemm.get(), rows, callers_device().queue.get()).check(rows));
  }
}

TEST(Gemm, TakesOffsetsAndSubBuffers) {
  const ContextPointer context = make_context();
  const std::size_t align = callers_device().align;
  for (const int type : kOutTypes)
    check_case(context, random_case(11, 33, 19, BERTCL_U8, type, 0, 21), 2 * align, 3 * align);
}

TEST(Gemm, ReadsScaleAndZeroPointThatTheDeviceHasMeasured) {
  const ContextPointer context = make_context();
  for (const int a_type : {BERTCL_U8, BERTCL_I8})
    for (const bool weights_have_zeros : {false, true}) {
      GemmCase c = random_case(7, 65, 40, a_type, BERTCL_F32, 0, 31);
      c.w_zeros.assign(weights_have_zeros ? 1 : 0, 5), c.row_scales.clear();
      const WeightsPointer weights = make_weights(context, c);
      GemmCase planned = c;
      planned.a_zero = 0;  // not what counts
      const GemmPointer gemm = make_gemm(weights, planned);
      const Mem a = callers_device().buffer(c.a);
      const Mem out = callers_device().buffer(std::vector<float>(7 * 65, -1.0f));
      const Mem scale = callers_device().buffer(std::vector{4.0f});
      const Mem zero = callers_device().buffer(std::vector{static_cast<std::uint8_t>(c.a_zero)});
      bertcl_gemm_args args{};
      args.size = sizeof(args), args.m = 7, args.a = a.get(), args.out = out.get();
      args.a_scale = scale.get(), args.a_zero_point = zero.get();
      ASSERT_EQ(
          bertcl_gemm_enqueue(gemm.get(), callers_device().queue.get(), &args, 0, nullptr, nullptr),
          BERTCL_OK)
          << bertcl_last_error();
      const auto bytes = callers_device().read(out);
      c.a_scale *= 4;
      for (int i = 0; i < 7 * 65; ++i)
        ASSERT_NO_FATAL_FAILURE(
            GemmCall::compare(c, i / 65, i % 65, &bytes[4 * static_cast<std::size_t>(i)]));
    }
}

TEST(Gemm, WaitsForItsEventsInAQueueOutOfOrder) {
  const ContextPointer context = make_context();
  const QueuePointer queue = callers_device().make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  GemmCase c = random_case(13, 65, 33, BERTCL_U8, BERTCL_I32, 0, 41);
  c.w_zeros.assign(1, -3);  // so that it takes two kernels
  const WeightsPointer weights = make_weights(context, c);
  const GemmPointer gemm = make_gemm(weights, c);
  const cl_event gate = clCreateUserEvent(callers_device().context.get(), nullptr);
  const GemmCall run(gemm.get(), c, queue.get(), 0, 0, gate);
  EXPECT_EQ(callers_device().read(run.out)[0], kPoison) << "it did not wait";
  clSetUserEventStatus(gate, CL_COMPLETE);
  run.check(c);
  clReleaseEvent(gate);
}

TEST(Gemm, OfNoRowsGivesItsEventAfterThoseOfTheList) {
  const ContextPointer context = make_context();
  GemmCase c = random_case(3, 5, 7, BERTCL_U8, BERTCL_I32, 0, 42);
  const WeightsPointer weights = make_weights(context, c);
  const GemmPointer gemm = make_gemm(weights, c);
  c.m = 0;
  const cl_event gate = clCreateUserEvent(callers_device().context.get(), nullptr);
  const GemmCall run(gemm.get(), c, callers_device().queue.get(), 0, 0, gate);
  cl_int state = CL_COMPLETE;
  clGetEventInfo(run.done.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state, nullptr);
  EXPECT_NE(state, CL_COMPLETE);
  clSetUserEventStatus(gate, CL_COMPLETE);
  run.check(c);
  clReleaseEvent(gate);
}

TEST(Gemm, ThreadsWithQueuesOfTheirOwnShareWeightsAndGemm) {
  const ContextPointer context = make_context();
  GemmCase c = random_case(40, 97, 65, BERTCL_U8, BERTCL_I32, 0, 51);
  c.w_zeros.assign(1, 9);
  const WeightsPointer weights = make_weights(context, c);
  const GemmPointer gemm = make_gemm(weights, c);
  const auto work = [&](unsigned thread) {
    const QueuePointer queue = callers_device().make_queue(0);
    for (unsigned i = 0; i < 8; ++i) {
      GemmCase own = c;
      std::mt19937 random(100 * thread + i);
      own.m = 1 + static_cast<int>(random() % 40);
      own.a = random_values<std::uint8_t>(static_cast<std::size_t>(own.m) * c.k, random, 0, 255);
      GemmCall(gemm.get(), own, queue.get()).check(own);
      check_case(context, random_case(5, 9, 11, BERTCL_I8, BERTCL_F32, 0, 100 * thread + i));
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
}

TEST(Gemm, KeepsWhatItIsMadeOf) {
  ContextPointer context = make_context();
  const GemmCase c = random_case(6, 64, 32, BERTCL_U8, BERTCL_U8, BERTCL_ACTIVATION_GELU, 61);
  WeightsPointer weights = make_weights(context, c);
  const GemmPointer gemm = make_gemm(weights, c);
  context.reset(), weights.reset();
  GemmCall(gemm.get(), c, callers_device().queue.get()).check(c);
}

// CL_MEM_REFERENCE_COUNT tells whether a released buffer would go.
TEST(Gemm, KeepsNoBufferOfTheCaller) {
  const ContextPointer context = make_context();
  GemmCase c = random_case(6, 64, 32, BERTCL_U8, BERTCL_I32, 0, 62);
  c.weights_in_buffer = true;
  const WeightsPointer weights = make_weights(context, c);
  const GemmPointer gemm = make_gemm(weights, c);
  const std::size_t align = callers_device().align;
  const GemmCall run(gemm.get(), c, callers_device().queue.get(), align, align);
  run.check(c);
  clFinish(callers_device().queue.get());
  for (const Mem& memory : {run.a, run.out}) {
    cl_uint references = 0;
    for (int i = 0; i < 1000 && references != 1; ++i) {  // drivers let go of them a little later
      clGetMemObjectInfo(memory.get(), CL_MEM_REFERENCE_COUNT, sizeof(references), &references,
                         nullptr);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(references, 1u);
  }
}

}  // namespace
}  // namespace bertcl::tests
