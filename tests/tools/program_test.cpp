// SPDX-License-Identifier: Apache-2.0
// The edge of the program: help, exit codes, one clear message for each failure.
#include <gmock/gmock.h>

#include "program_runner.hpp"

namespace bertcl::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kCommands = {"devices", "inspect", "quantize", "eval",
                                            "run",     "verify",  "answer",   "bench"};

TEST(Program, HelpListsEveryCommand) {
  const ProgramResult help = run_bertcl({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  for (const std::string& command : kCommands) EXPECT_THAT(help.out, HasSubstr("\n  " + command));
}

TEST(Program, EachCommandHasHelpWithAnExample) {
  for (const std::string& command : kCommands) {
    const ProgramResult help = run_bertcl({command, "--help"});
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_THAT(help.out, AllOf(HasSubstr("Usage: bertcl " + command), HasSubstr("--device"),
                                HasSubstr("--json"), HasSubstr("Example:\n  bertcl " + command)));
    EXPECT_EQ(help.err, "") << command;
  }
}

TEST(Program, BadUseIsRefusedWithAHint) {
  EXPECT_THAT(run_bertcl({}).err, HasSubstr("Usage: bertcl"));
  EXPECT_EQ(run_bertcl({}).code, 2);
  EXPECT_THAT(refusal(run_bertcl({"evaluate"})), HasSubstr("see bertcl --help"));
  EXPECT_THAT(refusal(run_bertcl({"devices", "--colour"})),
              AllOf(HasSubstr("--colour"), HasSubstr("see bertcl devices --help")));
}

TEST(Program, TellsItsVersion) {
  const ProgramResult version = run_bertcl({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, testing::MatchesRegex("bertcl [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

using DevicesTest = FolderTest;

TEST_F(DevicesTest, TableAndJsonAgree) {
  const ProgramResult result = run_bertcl({"devices", "--json", path("devices.json")});
  ASSERT_EQ(result.code, 0) << result.err;
  const nlohmann::json json = read_json(path("devices.json"));
  ASSERT_FALSE(json.at("devices").empty());
  for (const auto& device : json.at("devices")) {
    EXPECT_THAT(result.out, HasSubstr(device.at("name").get<std::string>()));
    EXPECT_THAT(result.out, HasSubstr(device.at("platform").get<std::string>()));
    EXPECT_TRUE(device.at("capabilities").at("fp64").is_boolean());
    EXPECT_GT(device.at("compute_units"), 0);
  }
  EXPECT_EQ(files(), std::vector<std::string>{"devices.json"});
}

TEST_F(DevicesTest, JsonToStandardOutputIsAlone) {
  const ProgramResult result = run_bertcl({"devices", "--json", "-"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(nlohmann::json::accept(result.out)) << result.out;
}

TEST_F(DevicesTest, HiddenCapabilitiesAreNamed) {
  const ProgramResult result = run_bertcl({"devices", "--json", "-"}, {{"BERTCL_DISABLE", "fp64"}});
  const nlohmann::json device = nlohmann::json::parse(result.out).at("devices").at(0);
  EXPECT_EQ(device.at("capabilities").at("fp64"), false);
  EXPECT_EQ(device.at("notes").at("fp64"), "hidden by BERTCL_DISABLE");
}

TEST_F(DevicesTest, AnUnknownDeviceIsRefusedWithTheList) {
  EXPECT_THAT(refusal(run_bertcl({"devices", "--device", "no such device"})),
              AllOf(HasSubstr("'no such device'"), HasSubstr("\n  0: ")));
  EXPECT_THAT(refusal(run_bertcl({"devices"}, {{"BERTCL_DEVICE", "zzz"}})), HasSubstr("'zzz'"));
}

TEST_F(DevicesTest, WithoutAPlatformTheMessageSaysHowToGetOne) {
  const ProgramResult result = run_bertcl({"devices"}, {{"OCL_ICD_VENDORS", path("none")}});
  EXPECT_THAT(refusal(result), HasSubstr("pocl-opencl-icd"));
}

}  // namespace
}  // namespace bertcl::tests
