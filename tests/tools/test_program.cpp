// SPDX-License-Identifier: Apache-2.0
// The edge of the program: help, exit codes, one clear message for each failure.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "program_runner.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::tests {
namespace {

TEST(Program, HelpListsEveryCommand) {
  const ProgramResult help = succeeded(run_bertcl({"--help"}));
  EXPECT_EQ(help.err, "");
  EXPECT_THAT(working_commands(),
              ElementsAre("devices", "inspect", "quantize", "eval", "run", "embed", "verify",
                          "answer", "rerank", "similarity", "classify", "tag", "fill-mask", "serve",
                          "bench", "tune"));
}

TEST(Program, HelpIsACommandToo) {
  EXPECT_EQ(run_bertcl({"help"}).out, run_bertcl({"--help"}).out);
  for (const std::string& command : working_commands())
    EXPECT_EQ(run_bertcl({"help", command}).out, run_bertcl({command, "--help"}).out);
  EXPECT_EQ(run_bertcl({"help", "eval"}).code, 0);
  EXPECT_EQ(run_bertcl({"help", "help"}).code, 0);
  EXPECT_EQ(refusal(run_bertcl({"help", "evl"})),
            "bertcl: unknown command 'evl' (did you mean eval?); see bertcl --help\n");
  EXPECT_EQ(refusal(run_bertcl({"help", "nope"})),
            "bertcl: unknown command 'nope'; see bertcl --help\n");
}

TEST(Program, EachCommandHasHelpWithAnExample) {
  for (const std::string& command : working_commands()) {
    const ProgramResult help = run_bertcl({command, "--help"});
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_THAT(help.out, AllOf(HasSubstr("Usage: bertcl " + command), HasSubstr("--device"),
                                HasSubstr("--json"), HasSubstr("\nExample:\n")));
    EXPECT_THAT(help.out.substr(help.out.find("\nExample:\n")), HasSubstr("bertcl " + command));
    EXPECT_EQ(help.err, "") << command;
    EXPECT_THAT(help.out, AllOf(Not(HasSubstr("{false}")), Not(HasSubstr("... ..."))));
  }
}

// Examples alone are longer, which a shell has to read.
TEST(Program, HelpFitsItsWidth) {
  for (const std::string& command : working_commands()) {
    const std::string help =
        run_bertcl({command, command == "quantize" ? "--help-all" : "--help"}).out;
    EXPECT_THAT(help, Not(HasSubstr("\n\n\n"))) << command;
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);)
      EXPECT_TRUE(line.size() <= 100 || line.starts_with("  bertcl ")) << command << ": " << line;
  }
}

TEST(Program, HelpTellsWhatMayNotBeNaN) {
  const auto help = [](const char* command) { return run_bertcl({command, "--help"}).out; };
  for (const char* command : {"answer", "classify", "embed", "eval", "rerank"})
    EXPECT_THAT(help(command), HasSubstr("if weights or outputs hold NaN")) << command;
  for (const char* command : {"bench", "inspect", "run", "tune", "verify"})
    EXPECT_THAT(help(command), HasSubstr("if weights hold NaN")) << command;
  EXPECT_THAT(help("serve"), HasSubstr("if weights or the logits of answers hold NaN"));
}

TEST(Program, QuantizeShowsTheUsualOptionsAndAllOnDemand) {
  const ProgramResult few = run_bertcl({"quantize", "--help"});
  const ProgramResult all = run_bertcl({"quantize", "--help-all"});
  EXPECT_EQ(few.code, 0);
  EXPECT_EQ(all.code, 0);
  EXPECT_THAT(few.out, AllOf(HasSubstr("--preset"), HasSubstr("--help-all"), HasSubstr("Example:"),
                             Not(HasSubstr("--two-sided")), Not(HasSubstr("--first-samples")),
                             Not(HasSubstr("\n\n\n"))));
  EXPECT_THAT(all.out, AllOf(HasSubstr("--preset"), HasSubstr("--two-sided"),
                             HasSubstr("Samples:\n  --first-samples"),
                             HasSubstr("How ranges are found:"), HasSubstr("Example:"),
                             HasSubstr("u8|i8|u8-symmetric|i8-asymmetric"), Not(HasSubstr("s8"))));
}

TEST(Program, BadUseIsRefusedWithAHint) {
  EXPECT_THAT(run_bertcl({}).err, HasSubstr("Usage: bertcl"));
  EXPECT_EQ(run_bertcl({}).code, 2);
  EXPECT_EQ(refusal(run_bertcl({"evaluate"})),
            "bertcl: unknown command 'evaluate'; see bertcl --help\n");
  expect_refused({"--colour"}, {"expected a command before '--colour'; see bertcl --help"});
  expect_refused({"devices", "--colour"}, {"--colour", "see bertcl devices --help"});
  EXPECT_EQ(refusal(run_bertcl({"inspect", kModel, "other.onnx", "more"})),
            "bertcl: unexpected argument 'other.onnx'; see bertcl inspect --help\n");
  for (const char* end : {"--", "++"})
    EXPECT_THAT(refusal(run_bertcl({"inspect", kModel, end, "other.onnx"})),
                HasSubstr("unexpected argument '"));
  EXPECT_EQ(refusal(run_bertcl({"eval", kModel, "--data"})),
            "bertcl: --data needs a value; see bertcl eval --help\n");
}

TEST(Program, TellsWhatSomebodyMayHaveMeant) {
  const auto hint = [](std::vector<std::string> arguments) {
    const std::string message = refusal(run_bertcl(arguments));
    const auto at = message.find("(did you mean ");
    return at == message.npos ? message : message.substr(at, message.find('?', at) + 2 - at);
  };
  EXPECT_EQ(hint({"quantise"}), "(did you mean quantize?)");
  EXPECT_EQ(hint({"emebd"}), "(did you mean embed?)") << "two swapped letters are one edit";
  EXPECT_EQ(hint({"tga"}), "(did you mean tag?)");
  EXPECT_EQ(hint({"--verson"}), "(did you mean --version?)");
  EXPECT_EQ(hint({"eval", "m.onnx", "--data", "d", "--prediction", "p"}),
            "(did you mean --predictions?)");
  EXPECT_EQ(hint({"eval", "m.onnx", "--dta", "d"}), "(did you mean --data?)")
      << "a missing --data does not hide the hint";
  EXPECT_EQ(hint({"bench", "m.onnx", "--bach=3"}), "(did you mean --batch?)");
  EXPECT_EQ(hint({"quantize", "m.onnx", "-o", "q", "--preset", "ort-tensorr"}),
            "(did you mean ort-tensorrt?)");
  EXPECT_EQ(hint({"quantize", "m.onnx", "-o", "q", "--method", "percentil"}),
            "(did you mean percentile?)");
  EXPECT_EQ(hint({"eval", "m.onnx", "--data", "d", "--task", "clasify"}),
            "(did you mean classify?)");
  EXPECT_EQ(hint({"devices", "--device", "acelerator"}), "(did you mean accelerator?)");
  EXPECT_EQ(hint({"inspect", kModel, "--disable-passes", "find_gleu"}),
            "(did you mean find_gelu?)");
  EXPECT_EQ(hint({"inspect", kModel, "--disable-kernels", "portabel"}), "(did you mean portable?)");
  // Where nothing is near, all are named.
  EXPECT_THAT(
      hint({"eval", "m.onnx", "--data", "d", "--task", "sst2"}),
      AllOf(HasSubstr("unknown value 'sst2' (choose from question-answering, classify, tag"),
            Not(HasSubstr("did you mean"))));
}

TEST(Program, WhatOnlyTheLongHelpShowsIsExplainedThere) {
  const auto refused = [](const std::vector<std::string>& more) {
    return refusal(run_bertcl(joined({"quantize", "m.onnx", "-o", "q"}, more)));
  };
  const std::string usual = "; see bertcl quantize --help\n",
                    all = "; see bertcl quantize --help-all\n";
  EXPECT_THAT(refused({"--two-side"}), HasSubstr("(did you mean --two-sided?)" + all));
  EXPECT_THAT(refused({"--colour"}), HasSubstr("unknown option '--colour'" + all));
  EXPECT_THAT(refused({"--percentile", "most"}), HasSubstr("is not a number" + all));
  EXPECT_THAT(refused({"--sampels", "3"}), HasSubstr("(did you mean --samples?)" + usual));
  EXPECT_THAT(refused({"--samples", "few"}), HasSubstr(usual));
  EXPECT_THAT(refused({"--places", "lots"}),
              AllOf(HasSubstr("--places: unknown value 'lots' (choose from linear, scores, "),
                    HasSubstr(all)));
  EXPECT_EQ(refused({"-o", "p"}), "bertcl: --output was given 2 times, expected once" + usual);
}

// An empty element is a slip, which would otherwise be dropped.
TEST(Program, ListsHaveNoEmptyElements) {
  const auto refused = [](const std::vector<std::string>& command, const std::string& option,
                          const std::string& one, const std::string& fault) {
    for (const std::string& list : {one + ",," + one, one + ",", "," + one}) {
      const std::string error =
          fmt::format("{}: {}", option, fmt::format(fmt::runtime(fault), list));
      expect_refused(joined(command, {option, list}), {error});
    }
  };
  const std::string empty = "empty element in '{}'";
  const std::vector<std::string> quantize = {"quantize", "m.onnx", "-o", "q"};
  refused(quantize, "--op-types", "MatMul", empty);
  refused(quantize, "--outputs", "Add", empty);
  refused(quantize, "--places", "linear", "unknown value '' (choose from linear, ");
  refused({"inspect", kModel}, "--disable-passes", "find_gelu", empty);
  refused({"inspect", kModel}, "--disable-kernels", "portable", empty);
  refused({"bench", "m.onnx"}, "--seq", "8", "'' is not an integer");
  refused({"tune", "m.onnx"}, "--rows", "8", "'' is not an integer");
}

// What was found, what is wanted, and no more: one short line.
TEST(Program, NumbersAreRefusedInOneShortLine) {
  const auto refused = [](std::vector<std::string> arguments) {
    const std::string message = refusal(run_bertcl(arguments));
    EXPECT_LT(message.size(), 100u) << message;
    return message;
  };
  EXPECT_EQ(refused({"eval", "m.onnx", "--data", "d", "--limit", "-1"}),
            "bertcl: --limit: '-1' is out of range (0 or more); see bertcl eval --help\n");
  EXPECT_EQ(refused({"eval", "m.onnx", "--data", "d", "--limit", "abc"}),
            "bertcl: --limit: 'abc' is not an integer; see bertcl eval --help\n");
  EXPECT_EQ(refused({"quantize", "m.onnx", "-o", "q", "--samples", "-5"}),
            "bertcl: --samples: '-5' is out of range (0 or more); see bertcl quantize --help\n");
  EXPECT_EQ(
      refused({"quantize", "m.onnx", "-o", "q", "--weight-bits", "9"}),
      "bertcl: --weight-bits: '9' is out of range (2 to 8); see bertcl quantize --help-all\n");
  EXPECT_EQ(refused({"bench", "m.onnx", "--batch", "0"}),
            "bertcl: --batch: '0' is out of range (1 or more); see bertcl bench --help\n");
  EXPECT_EQ(refused({"bench", "m.onnx", "--runs", "99999999999"}),
            "bertcl: --runs: '99999999999' is out of range (1 or more); see bertcl bench --help\n");
  for (const char* text : {"nan", "1e-3x", ""})
    EXPECT_EQ(
        refused({"verify", "m.onnx", "g.npz", "--atol", text}),
        fmt::format("bertcl: --atol: '{}' is not a number; see bertcl verify --help\n", text));
  EXPECT_EQ(refused({"verify", "m.onnx", "g.npz", "--atol", "-0.5"}),
            "bertcl: --atol: '-0.5' is out of range (0 or more); see bertcl verify --help\n");
  for (const char* text : {"lots", "4X", "-4", "1.5G", ""})
    EXPECT_EQ(refused({"bench", "m.onnx", "--max-memory", text}),
              fmt::format("bertcl: --max-memory: '{}' is not a size such as 500M or 4G; "
                          "see bertcl bench --help\n",
                          text));
  for (const char* text : {"99999999999999999999", "8388608T", "9223372036854775808",
                           "99999999999G", "99999999999999999999999G", "0", "0M"})
    EXPECT_EQ(
        refused({"bench", "m.onnx", "--max-memory", text}),
        fmt::format("bertcl: --max-memory: '{}' is out of range; see bertcl bench --help\n", text));
  EXPECT_THAT(refused({"bench", "m.onnx", "--max-memory", "8388607T"}), HasSubstr("m.onnx: no"));
  EXPECT_THAT(refused({"quantize", "m.onnx", "-o", "q", "--percentile", "most"}),
              HasSubstr("--percentile: 'most' is not a number"));
}

TEST(Program, FlagsTakeTrueAndFalseAlone) {
  for (const char* flag : {"--residual", "--no-residual", "--reduce-range", "--full-range",
                           "--absolute", "--no-lower-case", "--strip-accents"})
    for (const char* value : {"maybe", "x", "99999999999999999999"})
      EXPECT_THAT(
          refusal(run_bertcl({"quantize", "m.onnx", "-o", "q", fmt::format("{}={}", flag, value)})),
          AllOf(HasSubstr("is neither true nor false"), Not(HasSubstr("terminate"))))
          << flag;
  expect_refused({"embed", "m.onnx", "--normalize=x"}, {"--normalize", "neither true nor false"});
  expect_refused({"rerank", "m.onnx", "--sigmoid=x"}, {"--logits", "neither true nor false"});
}

TEST(Program, TellsItsVersion) {
  const ProgramResult version = succeeded(run_bertcl({"--version"}));
  EXPECT_THAT(version.out, MatchesRegex("bertcl [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

using DevicesTest = FolderTest;

TEST_F(DevicesTest, TableAndJsonAgree) {
  const ProgramResult result = succeeded(run_bertcl({"devices", "--json", path("devices.json")}));
  const nlohmann::json json = read_json(path("devices.json"));
  ASSERT_FALSE(json.at("devices").empty());
  for (const auto& device : json.at("devices")) {
    EXPECT_THAT(result.out, HasSubstr(device.at("name").get<std::string>()));
    EXPECT_THAT(result.out, HasSubstr(device.at("platform").get<std::string>()));
    EXPECT_TRUE(device.at("capabilities").at("fp64").is_boolean());
    EXPECT_GT(device.at("compute_units"), 0);
  }
  const bool cpus_alone = std::ranges::all_of(
      json.at("devices"), [](const auto& device) { return device.at("type") == "cpu"; });
  EXPECT_NE(result.out.find("int8 dot products: ") != std::string::npos, cpus_alone);
  EXPECT_EQ(files(), std::vector<std::string>{"devices.json"});
}

TEST_F(DevicesTest, JsonToStandardOutputIsAlone) {
  const ProgramResult result = succeeded(run_bertcl({"devices", "--json", "-"}));
  EXPECT_TRUE(nlohmann::json::accept(result.out)) << result.out;
}

TEST_F(DevicesTest, JsonToAnOpenFileFollowsTheTable) {
  const std::string table = run_bertcl({"devices"}).out;
  for (const char* name : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}) {
    const ProgramResult result = succeeded(run_bertcl({"devices", "--json", name}));
    EXPECT_THAT(result.out, StartsWith(table + "{\n")) << name;
    EXPECT_TRUE(nlohmann::json::accept(result.out.substr(table.size()))) << result.out;
  }
}

TEST_F(DevicesTest, HiddenCapabilitiesAreNamed) {
  const auto result = run_bertcl({"devices", "--json", "-"}, {{"BERTCL_DISABLE", "fp64"}});
  const nlohmann::json device = json_of(result).at("devices").at(0);
  EXPECT_EQ(device.at("capabilities").at("fp64"), false);
  EXPECT_EQ(device.at("notes").at("fp64"), "disabled by BERTCL_DISABLE");
}

TEST_F(DevicesTest, UnknownCapabilitiesToHideAreRefused) {
  expect_refused({"devices"}, {"'avx1024'", "avx512_vnni"}, {{"BERTCL_DISABLE", "fp64,avx1024"}});
}

TEST_F(DevicesTest, AnUnknownDeviceIsRefusedWithTheList) {
  expect_refused({"devices", "--device", "no such device"}, {"'no such device'", "\n  0: "});
  expect_refused({"devices"}, {"'zzz'"}, {{"BERTCL_DEVICE", "zzz"}});
}

TEST_F(DevicesTest, WithoutAPlatformTheMessageSaysHowToGetOne) {
  const ProgramResult result = run_bertcl({"devices"}, {{"OCL_ICD_VENDORS", path("none")}});
  expect_refused(result, {"pocl-opencl-icd"});
}

}  // namespace
}  // namespace bertcl::tests
