// SPDX-License-Identifier: Apache-2.0
// bertcl verify --all: folders of models, the table of what is expected, files of other projects.
#include <set>

#include "program_runner.hpp"
#include "tests/quant/tiny_bert.hpp"
#include "tests/support/files.hpp"
#include "tests/support/matchers.hpp"
#include "tools/verify/verify_folder.hpp"

namespace bertcl::tests {
namespace {

using VerifyFolderTest = FolderTest;

TEST_F(VerifyFolderTest, RefusedFilesAreCountedAndComparedWithTheTable) {
  std::filesystem::create_directories(folder_ / "models" / "bad");
  write("models/bad/words.onnx", "words");
  const std::string models = path("models");
  ProgramResult result = run_bertcl({"verify", "--all", models, "--json", path("v.json")});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("bad/words.onnx  refused"));
  EXPECT_EQ(read_json(path("v.json")).at("files").at(0).at("status"), "refused");

  const auto with = [&](const std::string& table) {
    return run_bertcl({"verify", "--all", models, "--expect", write("table.tsv", table)});
  };
  EXPECT_EQ(with("# comment\n\nbad/words.onnx\trefused\twords.onnx\n").code, 0);
  EXPECT_EQ(with("\xEF\xBB\xBF# comment\r\n\r\nbad/words.onnx\trefused\twords.onnx\r\n").code, 0);
  result = with("bad/words.onnx\trefused\tanother reason\n");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("refused, but not for the expected reason 'another reason'"));
  EXPECT_THAT(with("bad/words.onnx\tpass\t\n").err,
              HasSubstr("'refused', but the table expects 'pass'"));
  EXPECT_THAT(with("").err, HasSubstr("but not listed in the table"));
  EXPECT_THAT(with("bad/words.onnx\trefused\twords\nb.onnx\tpass\t\n").err,
              HasSubstr("b.onnx: listed in the table, but no such model in the folder"));
  expect_refused(with("bad/words.onnx\trefused\n"), {"needs a reason"});
  expect_refused(with("bad/words.onnx\tbroken\t\n"), {"table.tsv:1"});
  expect_refused(with("bad/words.onnx\trefused\twords\tfew\n"), {"MISMATCHES must be a number"});
  expect_refused(with("bad/words.onnx\tpass\t\t0.1\n"), {"MISMATCHES requires a REASON"});
}

TEST_F(VerifyFolderTest, AnotherStatusThanExpectedIsToldWithItsReason) {
  std::filesystem::create_directories(folder_ / "models" / "tiny");
  quant::tests::TinyBert bert;
  write("models/tiny/bert.onnx", bert.builder().model().SerializeAsString());
  const auto told = [&](const std::string& expected) {
    const ProgramResult result =
        run_bertcl({"verify", "--all", path("models"), "--expect",
                    write("table.tsv", "tiny/bert.onnx\t" + expected + "\tas told\n")});
    EXPECT_EQ(result.code, 1);
    return result.err;
  };
  EXPECT_THAT(
      told("pass"),
      HasSubstr(
          "tiny/bert.onnx: 'reference', but the table expects 'pass': no golden with all of its "
          "inputs and outputs (goldens/tiny~bert.npz or tiny/bert.npz)\n"));
  EXPECT_THAT(told("refused"),
              HasSubstr("'reference', but the table expects 'refused': no golden"));
  EXPECT_THAT(tools::unexpected({{"a.onnx", "pass", {}}}, {{"a.onnx", {"refused", "words"}}}),
              testing::ElementsAre("a.onnx: 'pass', but the table expects 'refused'"));
}

TEST_F(VerifyFolderTest, AFolderMayBeCalledTotal) {
  for (const std::string name : {"total", "other"}) {
    std::filesystem::create_directories(folder_ / "models" / name);
    write("models/" + name + "/words.onnx", "words");
  }
  EXPECT_THAT(run_bertcl({"verify", "--all", path("models")}).out,
              testing::ContainsRegex("\ntotal +0 +0 +1 +0 +1 .*\ntotal +0 +0 +2 +0 +2 "));
}

TEST_F(VerifyFolderTest, BadUse) {
  EXPECT_EQ(run_bertcl({"verify"}).code, 2);
  EXPECT_EQ(run_bertcl({"verify", "model.onnx"}).code, 2);
  EXPECT_EQ(run_bertcl({"verify", "model.onnx", "g.npz", "--all", path("x")}).code, 2);
  expect_refused({"verify", "--all", path("."), "--require", "int8"}, {"--require"});
  EXPECT_EQ(run_bertcl({"verify", "model.onnx", "g.npz", "--expect", path("x")}).code, 2);
  expect_refused({"verify", "--all", path("absent")}, {"--all: ", "absent: no such folder"});
  expect_refused({"verify", "--all", kModel}, {"is a file, expected a folder"});
  EXPECT_EQ(run_bertcl({"verify", "--all", path(".")}).code, 2);
}

const std::string kTable = source_file("tests/onnx/interop_expected.tsv");

TEST(Interop, EveryFileOfOtherProjectsMeetsTheTable) {
  BERTCL_NEEDS("interop/manifest.tsv");
  succeeded(run_bertcl({"verify", "--all", shared_file("interop").string(), "--expect", kTable}));
}

/// Of the files of whole models, float patterns and quantized forms 85 % have to run and agree, and
/// none may give a wrong result.
TEST(Interop, TheTableAsksForEnough) {
  int all = 0, agree = 0;
  for (const auto& [file, expectation] : tools::read_expectations(kTable)) {
    EXPECT_NE(expectation.status, "fail") << file;
    if (std::set<char>{'A', 'B', 'C'}.contains(file[0])) {
      ++all;
      agree += expectation.status == "pass" || expectation.status == "reference";
    } else if (file[0] == 'D') {
      EXPECT_EQ(expectation.status, "refused") << file;
    }
  }
  EXPECT_EQ(all, 171);
  EXPECT_GE(agree, 0.85 * all);
}

}  // namespace
}  // namespace bertcl::tests
