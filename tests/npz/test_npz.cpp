// SPDX-License-Identifier: Apache-2.0
// .npz files: what NumPy wrote is read, what is written is read back, damage is refused.
#include "npz/npz.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "bertcl/error.hpp"
#include "npz/npy.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::npz {
namespace {

using ir::DType;
using ir::Tensor;

// numpy.savez_compressed(f, ids=int64 [[1,2,3],[40,50,60]], half=float16 [1.5,-2]) of NumPy 2.4.6.
constexpr std::string_view kNumpyFile =
    "504b03042d0000000800000021001acdc3d7ffffffffffffffff070014006964732e6e707901001000b00000000000"
    "00"
    "0057000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9369a1aea3a09e965f54529498179f5f"
    "94"
    "920a12774bcc294e058a17672416a402f91a463a0ac69a3a0ab50a64032e4606086082d2cc505a034a1b41691b280d"
    "00"
    "504b03042d000000080000002100b3c1820cffffffffffffffff0800140068616c662e6e7079010010008400000000"
    "00"
    "000048000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a4aea3a09e965f54529498179f"
    "5f"
    "94920a12774bcc294e058a17672416a402f91a463a9a3a0ab50a14002e063b860300504b01022d032d000000080000"
    "00"
    "21001acdc3d757000000b00000000700000000000000000000008001000000006964732e6e7079504b01022d032d00"
    "00"
    "00080000002100b3c1820c480000008400000008000000000000000000000080019000000068616c662e6e7079504b"
    "05"
    "0600000000020002006b000000120100000000";

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

/// A .npy file of format 1.0 with this header dictionary and data.
std::vector<std::byte> npy(std::string header, std::string_view data) {
  header += '\n';
  std::string text = "\x93NUMPY";
  text += {'\1', '\0', static_cast<char>(header.size()), '\0'};
  text += header;
  text += data;
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class NpzTest : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& content) const {
    return folder_.write(name, content);
  }
  std::size_t files() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      ++count;
    return count;
  }

  const tests::ScratchFolder folder_;
};

TEST_F(NpzTest, ReadsWhatNumpyWrote) {
  const Arrays arrays = load(write("numpy.npz", from_hex(kNumpyFile)));
  ASSERT_EQ(arrays.size(), 2u);
  const Tensor& ids = arrays.at("ids");
  EXPECT_EQ(ids.dtype(), DType::i64);
  EXPECT_THAT(ids.shape(), ElementsAre(2, 3));
  EXPECT_THAT(ids.to_ints(), ElementsAre(1, 2, 3, 40, 50, 60));
  const Tensor& half = arrays.at("half");
  EXPECT_EQ(half.dtype(), DType::f16);
  EXPECT_THAT(half.to_doubles(), ElementsAre(1.5, -2.0));
}

TEST_F(NpzTest, EveryElementTypeComesBack) {
  std::mt19937 random(7);
  Arrays arrays;
  for (const DType type :
       {DType::f32, DType::f16, DType::f64, DType::i8, DType::u8, DType::i16, DType::u16,
        DType::i32, DType::u32, DType::i64, DType::u64, DType::boolean}) {
    std::vector<std::int64_t> values(3 * 5);
    for (auto& value : values) value = static_cast<std::int64_t>(random() % 2);
    arrays[fmt::format("in__layer/{}", ir::name_of(type))] =
        Tensor::of({3, 5, 1}, values).converted(type);
  }
  arrays["scalar"] = Tensor::scalar(2.5f);
  arrays["empty"] = Tensor::of<float>({0, 7}, {});
  save(folder_ / "all.npz", arrays);
  EXPECT_EQ(files(), 1u) << "a temporary file is left";
  EXPECT_EQ(load(folder_ / "all.npz"), arrays);
}

TEST_F(NpzTest, EqualArraysGiveEqualFiles) {
  const Arrays arrays = {{"x", Tensor::of<float>({2}, {1, 2})}};
  const auto content = [&](const char* name) {
    save(folder_ / name, arrays);
    std::ifstream file(folder_ / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(content("a.npz"), content("b.npz"));
}

TEST_F(NpzTest, NoDamageCrashesAndNoneIsReadAsTheSame) {
  const std::string good = from_hex(kNumpyFile);
  const Arrays expected = load(write("good.npz", good));
  for (std::size_t cut = 0; cut < good.size(); cut += 7) {
    const auto path = write("cut.npz", good.substr(0, cut));
    EXPECT_ERROR(HasSubstr(path.string()), load(path)) << "cut at " << cut;
  }
  // A changed byte of the compressed data breaks the check sum.
  for (std::size_t at = 60; at < 140; at += 3) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x55);
    const auto path = write("bad.npz", bad);
    EXPECT_ERROR(HasSubstr(path.string()), load(path)) << "byte " << at;
  }
}

TEST_F(NpzTest, NamesWhatIsMissingOrWrong) {
  EXPECT_ERROR(AllOf(HasSubstr("absent.npz"), HasSubstr("No such file")),
               load(folder_ / "absent.npz"));
  EXPECT_ERROR(HasSubstr("is a directory"), load(folder_.path()));
  EXPECT_ERROR(HasSubstr("x.npz"), load(write("x.npz", "words")));
  const Arrays arrays = {{"x", Tensor::scalar(1.0f)}};
  EXPECT_ERROR(AllOf(HasSubstr("no_folder/x.npz: cannot write"), Not(HasSubstr("tmp: "))),
               save(folder_ / "no_folder" / "x.npz", arrays));
}

TEST_F(NpzTest, LeavesPipesAndDevicesAlone) {
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_ERROR(AllOf(HasSubstr(pipe.string()), HasSubstr("device or a pipe")),
               save(pipe, {{"x", Tensor::scalar(1.0f)}}));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST_F(NpzTest, AFailedWriteLeavesTheOldFile) {
  const Arrays good = {{"x", Tensor::scalar(1.0f)}};
  save(folder_ / "x.npz", good);
  const Arrays bad = {{"x", Tensor::scalar(1.0f).converted(DType::bf16)}};
  EXPECT_ERROR(AllOf(HasSubstr("array 'x'"), HasSubstr("bf16")), save(folder_ / "x.npz", bad));
  EXPECT_EQ(load(folder_ / "x.npz"), good);
  EXPECT_EQ(files(), 1u);
}

TEST(Npy, ReadsFortranOrderAndBigEndian) {
  // numpy.asfortranarray(numpy.arange(6, dtype='>i4').reshape(2, 3))
  using namespace std::literals;
  const Tensor tensor = parse_npy(npy("{'descr': '>i4', 'fortran_order': True, 'shape': (2, 3), }",
                                      "\0\0\0\0\0\0\0\3\0\0\0\1\0\0\0\4\0\0\0\2\0\0\0\5"sv),
                                  "x");
  EXPECT_THAT(tensor.shape(), ElementsAre(2, 3));
  EXPECT_THAT(tensor.to_ints(), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Npy, HeaderFillsBlocksOf64Bytes) {
  for (const ir::Sizes& shape : {ir::Sizes{}, ir::Sizes{1}, ir::Sizes{1, 1, 1, 1, 1, 1, 1, 1, 1}}) {
    const auto bytes = format_npy(Tensor::of<float>(shape, {1.0f}));
    EXPECT_EQ((bytes.size() - 4) % 64, 0u);
    EXPECT_EQ(parse_npy(bytes, "x").shape(), shape);
  }
}

TEST(Npy, RefusesByName) {
  const auto refusal = [](const std::string& header, std::string_view data) {
    return error_of([&] { parse_npy(npy(header, data), "array 'x'"); });
  };
  EXPECT_THAT(refusal("{'descr': '<U2', 'fortran_order': False, 'shape': (1,), }", "abcdefgh"),
              AllOf(HasSubstr("array 'x'"), HasSubstr("'<U2'"), HasSubstr("supported")));
  EXPECT_THAT(refusal("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "abcd"),
              HasSubstr("structured types"));
  EXPECT_THAT(refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "abcd"),
              AllOf(HasSubstr("4 bytes"), HasSubstr("f32 [2] needs 8")));
  EXPECT_THAT(refusal("{'descr': '<f4', 'shape': (1,), }", "abcd"),
              HasSubstr("must all be present"));
  EXPECT_THAT(refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "abcd"),
              HasSubstr("must be a tuple of sizes"));
  EXPECT_THAT(refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999)}",
                      "abcd"),
              HasSubstr("the shape is too large"));
  EXPECT_THAT(refusal("{'descr': '<f4", ""), HasSubstr("unterminated string"));
}

TEST(Npz, OnlyWhatIsWantedIsRead) {
  const tests::ScratchFolder folder;
  const auto path = folder / "a.npz";
  save(path, {{"a", Tensor::of<float>({2}, {1, 2})}, {"b", Tensor::of<float>({2}, {3, 4})}});
  // Damages the numbers of b, which its check sum tells.
  std::ifstream stream(path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(stream), {});
  bytes[bytes.find(std::string("\x00\x00\x40\x40", 4))] ^= 1;
  folder.write("a.npz", bytes);
  EXPECT_THROW(load(path), Error);
  std::vector<std::string> asked;
  const Arrays arrays = load(path, [&](const std::string& name) {
    asked.push_back(name);
    return name == "a";
  });
  EXPECT_THAT(asked, ElementsAre("a", "b"));
  ASSERT_EQ(arrays.size(), 1u);
  EXPECT_EQ(arrays.at("a"), Tensor::of<float>({2}, {1, 2}));
  // What is not known is refused before anything is read.
  EXPECT_ERROR(HasSubstr("no a"),
               load(path, [](const std::string& name) -> bool { throw Error("no " + name); }));
}

}  // namespace
}  // namespace bertcl::npz
