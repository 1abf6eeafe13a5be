// SPDX-License-Identifier: Apache-2.0
// Element conversion against the definition, for every half there is.
#include <gtest/gtest.h>

#include <sys/mman.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <thread>

#include "bertcl/error.hpp"
#include "ir/tensor.hpp"

namespace bertcl::ir {
namespace {

float half_to_float(std::uint16_t half) {
  const auto bits = std::make_shared<std::uint16_t>(half);
  return Tensor(DType::f16, {1}, bits, std::as_bytes(std::span(bits.get(), 1)))
      .converted(DType::f32)
      .as<float>()[0];
}

TEST(Half, EveryHalfSurvivesTheRoundTrip) {
  for (std::uint32_t h = 0; h < 0x10000u; ++h) {
    const auto half = static_cast<std::uint16_t>(h);
    const float f = half_to_float(half);
    if ((h & 0x7fffu) > 0x7c00u) {
      EXPECT_TRUE(std::isnan(f));
      continue;
    }
    const int exponent = (h >> 10) & 31;
    const double mantissa = h & 0x3ffu;
    double expected =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    if (exponent == 31) expected = std::numeric_limits<double>::infinity();
    ASSERT_EQ(f, static_cast<float>(h & 0x8000u ? -expected : expected)) << h;
    ASSERT_EQ(float_to_half(f), half);
  }
}

TEST(Half, RoundsToNearestEven) {
  for (std::uint32_t h = 0; h < 0x7bffu; ++h) {
    const auto low = static_cast<std::uint16_t>(h), high = static_cast<std::uint16_t>(h + 1);
    const float middle = (half_to_float(low) + half_to_float(high)) / 2;
    ASSERT_EQ(float_to_half(middle), h % 2 == 0 ? low : high) << h;
    ASSERT_EQ(float_to_half(std::nextafter(middle, 1e9f)), high);
    ASSERT_EQ(float_to_half(std::nextafter(middle, -1e9f)), low);
  }
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00u);
  EXPECT_EQ(float_to_half(65519.0f), 0x7bffu);
}

TEST(Tensor, Conversion) {
  const Tensor t = Tensor::of<float>({4}, {-1.5f, 0.0f, 3.9f, 250.0f});
  EXPECT_EQ(t.converted(DType::i32).to_ints(), (std::vector<std::int64_t>{-1, 0, 3, 250}));
  EXPECT_EQ(t.converted(DType::boolean).to_ints(), (std::vector<std::int64_t>{1, 0, 1, 1}));
  EXPECT_EQ(t.converted(DType::bf16).to_doubles(), (std::vector<double>{-1.5, 0, 3.90625, 250}));
  EXPECT_THROW(t.as<std::int32_t>(), Error);
}

TEST(Tensor, BytesMustFitTheShape) {
  const auto owner = std::make_shared<std::vector<float>>(5);
  EXPECT_THROW(Tensor(DType::f32, {2, 3}, owner, std::as_bytes(std::span(*owner))), Error);
}

std::vector<float> counting(std::size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST(Tensor, ConcatPutsPartsSideBySide) {
  for (const std::int64_t rows : {2, 5000}) {  // made at once, and when asked for
    const auto n = static_cast<std::size_t>(rows);
    const Tensor a = Tensor::of({rows, 3}, counting(3 * n, 0));
    const Tensor half = Tensor::of({rows, 1}, counting(n, 0)).converted(DType::f16);
    const Tensor all = Tensor::concat(DType::f32, {a, half.converted(DType::f32), a});
    ASSERT_EQ(all.shape(), (Sizes{rows, 7}));
    std::vector<float> expected;
    for (std::size_t row = 0; row < n; ++row)
      for (std::size_t column = 0; column < 7; ++column)
        expected.push_back(column == 3 ? half_to_float(half.as<std::uint16_t>()[row])
                                       : static_cast<float>(3 * row + column % 4));
    const auto values = all.as<float>();
    EXPECT_EQ(std::vector<float>(values.begin(), values.end()), expected) << rows;
    EXPECT_EQ(all, Tensor::of({rows, 7}, expected));
    EXPECT_EQ(all.reshaped({7, rows}), Tensor::of({7, rows}, expected));
  }
  const Tensor one = Tensor::of<float>({1, 1}, {1}), two = Tensor::of<float>({2, 1}, {1, 2});
  EXPECT_THROW(Tensor::concat(DType::f32, {one, two}), Error);
}

TEST(Tensor, PartsAreThoseThatAreStored) {
  const Tensor half = Tensor::of({200, 100}, counting(20000, 0)).converted(DType::f16);
  const Tensor wide = half.converted(DType::f32);
  ASSERT_EQ(wide.dtype(), DType::f32);
  ASSERT_EQ(wide.parts().size(), 1u);
  EXPECT_EQ(wide.parts()[0].bytes().data(), half.bytes().data());
  EXPECT_EQ(wide.reshaped({100, 200}).parts()[0].shape(), (Sizes{100, 200}));
  const Tensor all = Tensor::concat(DType::f32, {wide, wide, wide});
  ASSERT_EQ(all.parts().size(), 3u);
  for (const Tensor& part : all.parts()) EXPECT_EQ(part.bytes().data(), half.bytes().data());
  ASSERT_EQ(half.parts().size(), 1u);
  EXPECT_EQ(half.parts()[0], half);
}

TEST(Tensor, SeveralThreadsMayAskForBytes) {
  const Tensor half = Tensor::of({300, 400}, counting(120000, 0)).converted(DType::f16);
  const Tensor wide = half.converted(DType::f32);
  std::vector<const float*> seen(4);
  std::vector<std::thread> threads;
  for (auto& data : seen) threads.emplace_back([&] { data = wide.as<float>().data(); });
  for (std::thread& thread : threads) thread.join();
  for (const float* data : seen) EXPECT_EQ(data, seen[0]);
}

TEST(Tensor, BytesOfAFileMayLieAtAnyAddressAndReturnAfterRelease) {
  constexpr std::size_t bytes = 1 << 16;
  const std::vector<float> values = counting(1000, 1);
  std::vector<std::byte> content(bytes, std::byte{7});
  std::memcpy(content.data() + 5001, values.data(), 4000);
  FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(std::fwrite(content.data(), 1, bytes, file), bytes);
  ASSERT_EQ(std::fflush(file), 0);
  void* at = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fileno(file), 0);
  std::fclose(file);
  ASSERT_NE(at, MAP_FAILED);
  const std::span mapped(static_cast<const std::byte*>(at), bytes);
  const Tensor t =
      Tensor::view(DType::f32, {1000}, nullptr, mapped.subspan(5001, 4000), Memory::mapped_file);
  EXPECT_EQ(t.bytes().data(), mapped.data() + 5001);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t.as<float>().data()) % alignof(float), 0u);
  EXPECT_EQ(t, Tensor::of({1000}, values));
  const Tensor all = Tensor::view(DType::u8, {bytes}, nullptr, mapped, Memory::mapped_file);
  all.release_pages();
  EXPECT_EQ(std::memcmp(all.bytes().data(), content.data(), bytes), 0);
  ::munmap(at, bytes);
}

TEST(Tensor, ReleaseLeavesMemoryThatIsNoFilesAlone) {
  const Tensor t = Tensor::of({100000}, counting(100000, 7));
  t.release_pages();
  EXPECT_EQ(t.as<float>()[50000], 50007.0f);
  const Tensor view =
      Tensor::view(DType::f32, {99999}, nullptr, t.bytes().subspan(4), Memory::anonymous);
  view.release_pages();
  EXPECT_EQ(view.as<float>()[50000], 50008.0f);
}

}  // namespace
}  // namespace bertcl::ir
