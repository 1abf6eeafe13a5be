// SPDX-License-Identifier: Apache-2.0
// What GEMMs refuse, and that the message names it.
#include <cmath>
#include <functional>

#include "tests/api/gemm_case.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/variants_before.hpp"

namespace bertcl::tests {
namespace {

constexpr std::int8_t kWeights[6] = {1, 2, 3, 4, 5, 6};  // [2][3]

class GemmErrors : public testing::Test {
 protected:
  GemmErrors() {
    weights_desc.size = sizeof(weights_desc);
    weights_desc.k = 2, weights_desc.n = 3, weights_desc.data = kWeights;
    desc.size = sizeof(desc), desc.a_type = BERTCL_U8, desc.out_type = BERTCL_F32;
    args.size = sizeof(args), args.m = 4, args.a = a.get(), args.out = out.get();
  }
  /// The message of a refusal.
  std::string of_weights(const std::function<void(bertcl_gemm_weights_desc&)>& change) {
    bertcl_gemm_weights_desc changed = weights_desc;
    change(changed);
    bertcl_gemm_weights* made = nullptr;
    const bool refused = bertcl_gemm_weights_create(context.get(), &changed, &made) != BERTCL_OK;
    EXPECT_EQ(made == nullptr, refused);
    bertcl_gemm_weights_free(made);
    return refused ? bertcl_last_error() : "accepted";
  }
  std::string of_gemm(const std::function<void(bertcl_gemm_desc&)>& change) {
    bertcl_gemm_desc changed = desc;
    change(changed);
    bertcl_gemm* made = nullptr;
    const bool refused = bertcl_gemm_create(weights().get(), &changed, &made) != BERTCL_OK;
    EXPECT_EQ(made == nullptr, refused);
    bertcl_gemm_free(made);
    return refused ? bertcl_last_error() : "accepted";
  }
  std::string of_call(const std::function<void(bertcl_gemm_args&)>& change,
                      cl_command_queue queue = callers_device().queue.get()) {
    bertcl_gemm_args changed = args;
    change(changed);
    cl_event event = nullptr;
    const bool refused =
        bertcl_gemm_enqueue(gemm().get(), queue, &changed, 0, nullptr, &event) != BERTCL_OK;
    EXPECT_EQ(event == nullptr, refused);
    if (event) clWaitForEvents(1, &event), clReleaseEvent(event);
    return refused ? bertcl_last_error() : "accepted";
  }
  const WeightsPointer& weights() {
    if (!weights_) {
      bertcl_gemm_weights* made = nullptr;
      EXPECT_EQ(bertcl_gemm_weights_create(context.get(), &weights_desc, &made), BERTCL_OK);
      weights_.reset(made);
    }
    return weights_;
  }
  const GemmPointer& gemm() {
    if (!gemm_) {
      bertcl_gemm* made = nullptr;
      EXPECT_EQ(bertcl_gemm_create(weights().get(), &desc, &made), BERTCL_OK);
      gemm_.reset(made);
    }
    return gemm_;
  }

  ContextPointer context = make_context();
  bertcl_gemm_weights_desc weights_desc{};
  bertcl_gemm_desc desc{};
  bertcl_gemm_args args{};
  Mem a = callers_device().buffer(std::vector<std::uint8_t>(8, 1));  // [4][2]
  Mem out = callers_device().buffer(std::vector<float>(12));         // [4][3]

 private:
  WeightsPointer weights_;
  GemmPointer gemm_;
};

TEST_F(GemmErrors, NothingIsWrongAtFirst) {
  EXPECT_EQ(of_weights([](auto&) {}), "accepted");
  EXPECT_EQ(of_gemm([](auto&) {}), "accepted");
  EXPECT_EQ(of_call([](auto&) {}), "accepted");
  // Panels, padding included, and sums of three columns.
  EXPECT_GE(bertcl_gemm_weights_bytes(weights().get()), 6u + 12u);
}

TEST_F(GemmErrors, Null) {
  const cl_command_queue queue = callers_device().queue.get();
  bertcl_gemm_context* made_context = nullptr;
  bertcl_gemm_weights* made_weights = nullptr;
  bertcl_gemm* made_gemm = nullptr;
  bertcl_gemm_info info{};
  bertcl_gemm_options options{};
  const auto refused = BERTCL_INVALID_ARGUMENT;
  EXPECT_EQ(bertcl_gemm_context_create(nullptr, nullptr, &made_context), refused);
  EXPECT_EQ(bertcl_gemm_context_create(queue, nullptr, nullptr), refused);
  EXPECT_EQ(bertcl_gemm_context_create(queue, &options, &made_context), refused) << "no size";
  EXPECT_EQ(bertcl_gemm_weights_create(nullptr, &weights_desc, &made_weights), refused);
  EXPECT_EQ(bertcl_gemm_weights_create(context.get(), nullptr, &made_weights), refused);
  EXPECT_EQ(bertcl_gemm_weights_create(context.get(), &weights_desc, nullptr), refused);
  EXPECT_EQ(bertcl_gemm_create(nullptr, &desc, &made_gemm), refused);
  EXPECT_EQ(bertcl_gemm_create(weights().get(), nullptr, &made_gemm), refused);
  EXPECT_EQ(bertcl_gemm_create(weights().get(), &desc, nullptr), refused);
  EXPECT_EQ(bertcl_gemm_enqueue(nullptr, queue, &args, 0, nullptr, nullptr), refused);
  EXPECT_EQ(bertcl_gemm_enqueue(gemm().get(), nullptr, &args, 0, nullptr, nullptr), refused);
  EXPECT_EQ(bertcl_gemm_enqueue(gemm().get(), queue, nullptr, 0, nullptr, nullptr), refused);
  EXPECT_EQ(bertcl_gemm_enqueue(gemm().get(), queue, &args, 1, nullptr, nullptr), refused);
  EXPECT_EQ(bertcl_gemm_get_info(nullptr, 1, &info), refused);
  EXPECT_EQ(bertcl_gemm_get_info(gemm().get(), 1, nullptr), refused);
  EXPECT_EQ(bertcl_gemm_get_info(gemm().get(), 1, &info), refused) << "no size";
  info.size = sizeof(info);
  EXPECT_EQ(bertcl_gemm_get_info(gemm().get(), -1, &info), refused);
  EXPECT_EQ(bertcl_gemm_weights_bytes(nullptr), 0u);
  EXPECT_THAT(of_call([](auto& c) { c.a = nullptr; }), HasSubstr("a and out"));
  EXPECT_THAT(of_call([](auto& c) { c.out = nullptr; }), HasSubstr("a and out"));
  bertcl_gemm_context_free(nullptr);
  bertcl_gemm_weights_free(nullptr);
  bertcl_gemm_free(nullptr);
}

TEST_F(GemmErrors, UnknownVariant) {
  bertcl_gemm_options options{sizeof(options), "ref,avx2"};
  bertcl_gemm_context* made = nullptr;
  EXPECT_NE(bertcl_gemm_context_create(callers_device().queue.get(), &options, &made), BERTCL_OK);
  EXPECT_THAT(bertcl_last_error(), HasSubstr("'avx2'"));
  EXPECT_EQ(made, nullptr);
}

TEST_F(GemmErrors, EveryVariantSwitchedOff) {
  context = make_context(s8_variants_before("").c_str());
  EXPECT_THAT(of_weights([](auto&) {}), HasSubstr("ref: disabled"));
}

TEST_F(GemmErrors, Weights) {
  static const std::int32_t zeros[] = {1, 128, 0};
  static const float scales[] = {1, NAN, 1};
  using Desc = bertcl_gemm_weights_desc;
  EXPECT_THAT(of_weights([](Desc& d) { d.k = 0; }), HasSubstr("[0, 3]"));
  EXPECT_THAT(of_weights([](Desc& d) { d.n = -1; }), HasSubstr("[2, -1]"));
  EXPECT_THAT(of_weights([](Desc& d) { d.k = 65794; }), HasSubstr("65793"));
  EXPECT_THAT(
      of_weights([](Desc& d) { d.k = 33026, d.zero_points = zeros, d.zero_point_count = 1; }),
      HasSubstr("33025"));
  EXPECT_THAT(of_weights([](Desc& d) { d.data = nullptr; }), HasSubstr("as data or as a buffer"));
  EXPECT_THAT(of_weights([&](Desc& d) { d.buffer = a.get(); }),
              HasSubstr("as data or as a buffer"));
  EXPECT_THAT(of_weights([&](Desc& d) { d.data = nullptr, d.buffer = a.get(), d.k = 3; }),
              HasSubstr("'weights' has 8 bytes; 9 are needed"));
  EXPECT_THAT(of_weights([](Desc& d) { d.scales = scales, d.scale_count = 2; }),
              HasSubstr("2 scales of weights were given for 3 columns"));
  EXPECT_THAT(of_weights([](Desc& d) { d.scales = scales, d.scale_count = 3; }),
              HasSubstr("not finite"));
  EXPECT_THAT(of_weights([](Desc& d) { d.scales = scales; }), HasSubstr("must be set together"));
  EXPECT_THAT(of_weights([](Desc& d) { d.zero_point_count = 1; }),
              HasSubstr("must be set together"));
  EXPECT_THAT(of_weights([](Desc& d) { d.zero_points = zeros, d.zero_point_count = 3; }),
              HasSubstr("zero point of 128 for weights"));
}

TEST_F(GemmErrors, Desc) {
  static const float scale[] = {0.5f}, no_scale[] = {0.0f};
  static const std::int32_t zero[] = {-1};
  using Desc = bertcl_gemm_desc;
  EXPECT_THAT(of_gemm([](Desc& d) { d.a_type = BERTCL_F32; }), HasSubstr("a is f32"));
  EXPECT_THAT(of_gemm([](Desc& d) { d.out_type = BERTCL_F16; }), HasSubstr("out is f16"));
  EXPECT_THAT(of_gemm([](Desc& d) { d.out_type = 99; }),
              HasSubstr("out_type is 99, expected 0 to"));
  EXPECT_THAT(of_gemm([](Desc& d) { d.activation = 5; }),
              HasSubstr("activation is 5, expected 0 to 4"));
  EXPECT_THAT(of_gemm([](Desc& d) { d.a_zero_point = 256; }), HasSubstr("256 for a"));
  EXPECT_THAT(of_gemm([](Desc& d) { d.a_type = BERTCL_I8, d.a_zero_point = 128; }),
              HasSubstr("128 for a"));
  EXPECT_THAT(of_gemm([](Desc& d) { d.a_scale = INFINITY; }), HasSubstr("not finite"));
  EXPECT_THAT(of_gemm([](Desc& d) { d.out_type = BERTCL_U8; }), HasSubstr("needs a scale"));
  EXPECT_THAT(of_gemm([](Desc& d) { d.out_scales = scale, d.out_scale_count = 1; }),
              HasSubstr("neither scales"));
  EXPECT_THAT(of_gemm([](Desc& d) {
                d.out_type = BERTCL_U8, d.out_scales = no_scale, d.out_scale_count = 1;
              }),
              HasSubstr("above 0"));
  static const float tiny[] = {1e-39f};
  EXPECT_THAT(
      of_gemm([](Desc& d) { d.out_type = BERTCL_U8, d.out_scales = tiny, d.out_scale_count = 1; }),
      HasSubstr("reciprocal"));
  EXPECT_THAT(of_gemm([](Desc& d) { d.out_type = BERTCL_I32, d.a_scale = 2; }),
              HasSubstr("the scale of a must be 1"));
  EXPECT_THAT(of_gemm([](Desc& d) {
                d.out_type = BERTCL_U8, d.out_scales = scale, d.out_scale_count = 1;
                d.out_zero_points = zero, d.out_zero_point_count = 1;
              }),
              HasSubstr("-1 for out"));
  EXPECT_THAT(
      of_gemm([](Desc& d) { d.out_type = BERTCL_I32, d.activation = BERTCL_ACTIVATION_RELU; }),
      HasSubstr("bias and activation must be unset"));
}

TEST_F(GemmErrors, Calls) {
  using Args = bertcl_gemm_args;
  const std::size_t align = callers_device().align;
  EXPECT_THAT(of_call([](Args& c) { c.m = 5; }), HasSubstr("'a' has 8 bytes; 10 are needed"));
  EXPECT_THAT(of_call([](Args& c) { c.m = -1; }), HasSubstr("-1 rows"));
  EXPECT_THAT(of_call([](Args& c) { c.m = std::int64_t{1} << 31; }), HasSubstr("2147483648 rows"));
  EXPECT_THAT(of_call([](Args& c) { c.a_offset = 9; }), HasSubstr("'a' has 8 bytes"));
  EXPECT_THAT(of_call([](Args& c) { c.m = 1, c.out_offset = 4; }),
              HasSubstr("'out' begins at byte 4"));
  EXPECT_THAT(of_call([](Args& c) { c.m = 1, c.out_offset = SIZE_MAX; }),
              HasSubstr("'out' has 48"));
  const Mem byte = callers_device().buffer(std::vector{'a'});
  EXPECT_THAT(of_call([&](Args& c) { c.row_scales = a.get(); }), HasSubstr("'row_scales' has 8"));
  EXPECT_THAT(of_call([&](Args& c) { c.a_scale = byte.get(); }),
              HasSubstr("'a_scale' has 1 bytes"));
  EXPECT_THAT(of_call([&](Args& c) { c.a = out.get(); }), HasSubstr("a and out overlap"));
  const Mem both = callers_device().buffer(std::vector<std::uint8_t>(2 * align + 64));
  EXPECT_EQ(of_call([&](Args& c) { c.a = c.out = both.get(), c.out_offset = align; }), "accepted");
}

TEST_F(GemmErrors, OtherContexts) {
  const CallersDevice other;
  EXPECT_THAT(of_call([](auto&) {}, other.queue.get()), HasSubstr("another cl_context"));
  const Mem foreign = other.buffer(std::vector<std::uint8_t>(8));
  EXPECT_THAT(of_call([&](auto& c) { c.a = foreign.get(); }), HasSubstr("another cl_context"));
}

TEST_F(GemmErrors, Images) {
  cl_bool has_images = CL_FALSE;
  ASSERT_EQ(clGetDeviceInfo(callers_device().device, CL_DEVICE_IMAGE_SUPPORT, sizeof(has_images),
                            &has_images, nullptr),
            CL_SUCCESS);
  if (!has_images) GTEST_SKIP() << "the device has no images (CL_DEVICE_IMAGE_SUPPORT)";
  const cl_image_format format{CL_RGBA, CL_UNSIGNED_INT8};
  cl_image_desc of_image{};
  of_image.image_type = CL_MEM_OBJECT_IMAGE2D, of_image.image_width = of_image.image_height = 8;
  const cl_mem image = clCreateImage(callers_device().context.get(), CL_MEM_READ_WRITE, &format,
                                     &of_image, nullptr, nullptr);
  ASSERT_TRUE(image);
  EXPECT_THAT(of_call([&](auto& c) { c.a = image; }), HasSubstr("'a' is an image"));
  clReleaseMemObject(image);
}

// A caller that was compiled with an older header, whose structs end earlier.
TEST_F(GemmErrors, ShorterStructsAreFilledUpWithDefaults) {
  static const float bad_scale[] = {NAN};
  weights_desc.size = offsetof(bertcl_gemm_weights_desc, scales);
  weights_desc.scales = bad_scale, weights_desc.scale_count = 1;  // beyond it
  EXPECT_EQ(of_weights([](auto&) {}), "accepted");
  bertcl_gemm_info info;
  std::memset(&info, 0x5a, sizeof(info));
  info.size = offsetof(bertcl_gemm_info, why_not_faster);
  ASSERT_EQ(bertcl_gemm_get_info(gemm().get(), 1, &info), BERTCL_OK);
  EXPECT_STRNE(info.variant, "");
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(info.why_not_faster), 0x5a5a5a5a5a5a5a5a);
}

}  // namespace
}  // namespace bertcl::tests
