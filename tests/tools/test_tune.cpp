// SPDX-License-Identifier: Apache-2.0
// bertcl tune: what it stores, that the planner takes it, and that a wrong kernel never wins.
#include <sys/stat.h>

#include <filesystem>
#include <set>

#include "opencl/context.hpp"
#include "plan/arithmetic.hpp"
#include "plan/predicted.hpp"
#include "plan/tuning.hpp"
#include "program_runner.hpp"
#include "tests/support/matchers.hpp"
#include "tools/measure/tuner.hpp"

namespace bertcl::tests {
namespace {

struct TuneTest : FolderTest {
  const std::map<std::string, std::string> environment{{"BERTCL_TUNING", path("tuning.json")},
                                                       {"BERTCL_DISABLE", ""}};

  nlohmann::json json_of(const std::vector<std::string>& arguments,
                         std::map<std::string, std::string> more = {}) const {
    more.insert(environment.begin(), environment.end());
    succeeded(run_bertcl(joined(arguments, {"--json", path("out.json")}), more));
    return read_json(path("out.json"));
  }
  /// Variants of the linears of 384 by 384, and what is said of their tuning.
  std::pair<std::set<std::string>, nlohmann::json> gemms() const {
    std::set<std::string> found;
    nlohmann::json tuned;
    const nlohmann::json json = json_of({"inspect", kModel});
    for (const nlohmann::json& op : json.at("ops"))
      if (op.at("op") == "linear" && op.at("operations") == 2.0 * 384 * 384 * 128) {
        found.insert(op.at("variant"));
        tuned = op.at("tuned");
      }
    return {found, tuned};
  }
  void store(const std::string& variant, const std::string& device = "",
             const std::string& driver = "") const {
    plan::Tuning tuning{device, driver, "", {}};
    tuning.put({"linear", "fp32", 384, 384, {{32, variant, 10, 15}}});
    plan::write_tuning(path("tuning.json"), tuning);
  }
};

TEST_F(TuneTest, AStoredChoiceIsTakenAndShown) {
  const auto [standard, untuned] = gemms();
  ASSERT_EQ(standard.size(), 1u);
  EXPECT_TRUE(untuned.is_null());
  store("portable");
  const auto [taken, tuned] = gemms();
  EXPECT_EQ(taken, std::set<std::string>{"portable"});
  EXPECT_NEAR(tuned.at("gain").get<double>(), 1.5, 1e-9);
  EXPECT_EQ(tuned.at("default"), *standard.begin());
  EXPECT_THAT(run_bertcl({"inspect", kModel}, environment).out,
              HasSubstr("tuned: 1.50x as fast as the default"));
  store("a variant of another version");
  EXPECT_EQ(gemms().first, standard);
}

TEST_F(TuneTest, ADamagedFileIsIgnoredWithANote) {
  const auto standard = gemms().first;
  write("tuning.json", R"({"format": 4, "gemms": )");
  EXPECT_EQ(gemms().first, standard);
  const ProgramResult result = succeeded(run_bertcl({"inspect", kModel}, environment));
  EXPECT_THAT(result.out,
              AllOf(HasSubstr(path("tuning.json") + " is not used"), HasSubstr("bertcl tune")));
  EXPECT_THAT(run_bertcl({"run", kModel}, environment, "a\n").err,
              HasSubstr(path("tuning.json") + " is not used"));
}

TEST_F(TuneTest, AFileOfAnotherDeviceOrDriverIsIgnoredWithANote) {
  const auto standard = gemms().first;
  const opencl::DeviceInfo own = opencl::Context::create()->info();
  const std::string note = path("tuning.json") + " is not used: it was measured on ";
  store("portable", own.name, own.driver);
  EXPECT_EQ(gemms().first, std::set<std::string>{"portable"});
  for (const auto& [device, driver] :
       {std::pair("NVIDIA H100", own.driver), {own.name.c_str(), "550.1"}}) {
    store("portable", device, driver);
    EXPECT_EQ(gemms().first, standard) << device;
    EXPECT_THAT(run_bertcl({"inspect", kModel}, environment).out,
                AllOf(HasSubstr(note), HasSubstr(device), HasSubstr(driver)));
    EXPECT_THAT(run_bertcl({"run", kModel}, environment, "a\n").err, HasSubstr(note));
  }
}

TEST_F(TuneTest, AFileThatIsNamedButAbsentIsToldOf) {
  const std::string note = "BERTCL_TUNING names " + path("tuning.json") + ", which does not exist";
  EXPECT_THAT(run_bertcl({"inspect", kModel}, environment).out, HasSubstr(note));
  const ProgramResult result = succeeded(run_bertcl({"run", kModel}, environment, "a\n"));
  EXPECT_THAT(result.err, HasSubstr(note));
  EXPECT_EQ(run_bertcl({"run", kModel}, {{"BERTCL_TUNING", "off"}}, "a\n").err, "");
}

/// What was found about a variant, in all GEMMs.
std::set<bool> verdicts(const nlohmann::json& tuned, const std::string& variant) {
  std::set<bool> right;
  for (const nlohmann::json& gemm : tuned.at("gemms"))
    for (const nlohmann::json& tried : gemm.at("variants"))
      if (tried.at("variant") == variant) right.insert(tried.at("right").get<bool>());
  return right;
}

TEST_F(TuneTest, AWrongKernelNeverWins) {
  if (gemms().first.contains("portable")) GTEST_SKIP() << "no other variant to tune to";
  const std::vector<std::string> tune{
      "tune", kModel, "--rows", "130", "--seconds", "120", "--disable-kernels", "clblast"};
  const nlohmann::json right = json_of(tune);
  EXPECT_EQ(verdicts(right, "portable"), std::set<bool>{true});
  EXPECT_EQ(right.at("wrong"), 0);
  EXPECT_TRUE(std::filesystem::exists(path("tuning.json")));
  ASSERT_FALSE(right.at("gemms").empty());

  // The same kernel, but it stops after the first of its products along K: wrong, and much faster.
  std::filesystem::copy(source_file("kernels_cl"), path("kernels"),
                        std::filesystem::copy_options::recursive);
  const std::string file = path("kernels/gemm/gemm_f32_portable.cl");
  std::string source = read(file);
  const std::string loop = "k < K;";
  ASSERT_NE(source.find(loop), std::string::npos);
  source.replace(source.find(loop), loop.size(), "k < 1;");
  write("kernels/gemm/gemm_f32_portable.cl", source);
  const nlohmann::json spoilt = json_of(tune, {{"BERTCL_KERNELS", path("kernels")}});
  EXPECT_EQ(verdicts(spoilt, "portable"), std::set<bool>{false});
  for (const nlohmann::json& gemm : spoilt.at("gemms"))
    for (const nlohmann::json& row : gemm.at("chosen")) EXPECT_NE(row.at("variant"), "portable");
}

/// The variants chosen for 16, 128 and 1024 rows, where the default takes 60, 60 and 110 us.
std::vector<std::string> chosen(const std::vector<tools::Measured>& measured,
                                const std::string& default_variant = "mma") {
  const tools::TunedStep step{
      "linear_q", plan::Arithmetic::int8, {384, 1536, {}, default_variant, 0}};
  const auto gemm = tools::choose_by_rows(
      step, {16, 128, 1024}, {default_variant, "default", "", {60, 60, 110}}, measured);
  std::vector<std::string> variants;
  if (gemm)
    for (const plan::TunedRows& row : gemm->by_rows) variants.push_back(row.variant);
  return variants;
}

// The planner divides K in one way, from the fewest rows on.
TEST(ChooseByRows, OnlyTheFirstSplitKContinues) {
  const tools::Measured mma{"mma", "64/16", "", {50, 50, 100}};
  const tools::Measured two{"mma_split_k_2", "64/16", "", {12, 25}, {}, 2};
  const tools::Measured four{"mma_split_k_4", "64/16", "", {10, 30, 90}, {}, 4};
  EXPECT_THAT(chosen({mma, two, four}),
              ElementsAre("mma_split_k_4", "mma_split_k_4", "mma_split_k_4"));
  EXPECT_THAT(chosen({mma, two}), ElementsAre("mma_split_k_2", "mma_split_k_2", "mma"));
  const tools::Measured four_of_few{"mma_split_k_4", "64/16", "", {10}, {}, 4};
  EXPECT_THAT(chosen({mma, two, four_of_few}), ElementsAre("mma_split_k_4", "mma", "mma"));
}

TEST(ChooseByRows, NoSplitKFollowsAnUnsplitOne) {
  const tools::Measured mma{"mma", "64/16", "", {50, 50, 100}};
  const tools::Measured small{"mma_32x64", "64/16", "", {8, 40, 200}};
  const tools::Measured four{"mma_split_k_4", "64/16", "", {10, 20, 90}, {}, 4};
  EXPECT_THAT(chosen({mma, small, four}), ElementsAre("mma_32x64", "mma_32x64", "mma"));
  EXPECT_THAT(chosen({small, four}), ElementsAre("mma_32x64", "mma_32x64", "mma_32x64"));
}

// Of predicted tiles the plain variant is one, so that it can gain over them.
TEST(ChooseByRows, ThePlainVariantGainsOverPredictedTiles) {
  const tools::Measured wgmma{"wgmma", "64/16", "", {50, 50, 100}};
  const tools::Measured slow{"wgmma_64x64", "64/16", "", {60, 70, 200}};
  EXPECT_THAT(chosen({wgmma, slow}, std::string(plan::kPredictedTiles)),
              ElementsAre("wgmma", "wgmma", "wgmma"));
  EXPECT_THAT(chosen({wgmma, slow}, "wgmma"), IsEmpty());
  EXPECT_THAT(chosen({slow}, std::string(plan::kPredictedTiles)), IsEmpty());
}

// The default is measured first: a series of a device that has just woken up.
TEST(UseFasterSeries, TheDefaultIsAsFastAsItsVariant) {
  tools::Measured standard{"x86", "default", "", {10.2, 8.5}, {"x86", "x86"}};
  const tools::Measured same{"x86", "16/4", "", {1.3, 8.7}, {"x86", "x86"}};
  const tools::Measured slower{"portable", "8/4", "", {2.8, 15}, {"portable", "portable"}};
  const tools::TunedStep step{"linear_q", plan::Arithmetic::int8, {192, 64, {}, "x86", 0}};
  tools::use_faster_series(standard, {same, slower});
  EXPECT_THAT(standard.us, ElementsAre(1.3, 8.5));
  EXPECT_FALSE(tools::choose_by_rows(step, {8, 64}, standard, {same, slower}));
}

// On some rows the default runs other tiles than the variant of its name.
TEST(UseFasterSeries, OnlyOfWhatTheDefaultRan) {
  tools::Measured standard{"mma", "default", "", {60, 60, 110}, {"mma_split_k_2", "mma", "mma"}};
  tools::use_faster_series(standard, {{"mma", "64/16", "", {50, 50}, {"mma", "mma"}},
                                      {"mma_split_k_2", "64/16", "", {55}, {"mma_split_k_2"}}});
  EXPECT_THAT(standard.us, ElementsAre(55, 50, 110));
}

TEST_F(TuneTest, WithoutAPlaceForTheResultItIsRefused) {
  expect_refused({"tune", kModel}, {"BERTCL_TUNING"}, {{"BERTCL_TUNING", "off"}});
  expect_refused({"tune", kModel, "--rows", "8,0"},
                 {"--rows", "'0' is out of range (1 to 1048576)"}, environment);
}

TEST_F(TuneTest, HasNoOptionsWithoutEffect) {
  for (const char* option : {"--keep-padding", "--command-buffer"})
    expect_refused({"tune", kModel, option}, {std::string("unknown option '") + option},
                   environment);
}

// Before anything is measured: not even the model is read.
TEST_F(TuneTest, APlaceThatCannotBeWrittenIsRefusedAtOnce) {
  write("file", "x");
  for (const std::string& place : {path("file/tuning.json"), std::string("/proc/bertcl/t.json")})
    expect_refused({"tune", write("no_model.onnx", "x")}, {place, "cannot write"},
                   {{"BERTCL_TUNING", place}});
}

TEST_F(TuneTest, AFileOfAnotherKindIsNotOverwritten) {
  const std::string notes = write("notes.txt", "keep me\n");
  expect_refused({"tune", kModel}, {notes, "not a tuning file"}, {{"BERTCL_TUNING", notes}});
  EXPECT_EQ(read(notes), "keep me\n");
  const std::string other = write("other.json", R"({"format": 4, "rows": []})");
  expect_refused({"tune", kModel}, {"not a tuning file"}, {{"BERTCL_TUNING", other}});
}

TEST(CheckMemory, RowsThatTakeMoreThanHalfOfItAreRefused) {
  const std::vector<tools::TunedStep> gemms{
      {"linear", plan::Arithmetic::fp32, {384, 1536, {}, "portable", 0}}};
  opencl::DeviceInfo device;
  device.global_mem_bytes = std::uint64_t{2} * 100 * (12 * 1536 + 24 * 384);
  EXPECT_NO_THROW(tools::check_memory(gemms, 100, device));
  EXPECT_ERROR(AllOf(HasSubstr("--rows 101"), HasSubstr("memory")),
               tools::check_memory(gemms, 101, device));
}

TEST_F(TuneTest, WhatIsNoFileIsNotWaitedFor) {
  std::filesystem::create_directory(path("folder"));
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  for (const char* name : {"folder", "pipe"})
    EXPECT_EQ(run_bertcl({"inspect", kModel}, {{"BERTCL_TUNING", path(name)}}).code, 0) << name;
}

}  // namespace
}  // namespace bertcl::tests
