// SPDX-License-Identifier: Apache-2.0
// What reaches a terminal: nothing that steers it; what does not reach a file: an error.
#include "tools/terminal/terminal.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "onnx/proto.hpp"
#include "program_runner.hpp"
#include "tests/support/files.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::tools {
namespace {

using tests::run_bertcl;

TEST(Printable, WhatSteersATerminalIsEscaped) {
  EXPECT_EQ(printable("\x1b[2Ja\rb\x7f\b"), "\\x1b[2Ja\\x0db\\x7f\\x08");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\x9b"
            "2J")
      << "the same in one character";
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("two\n\tlines\n"), "two\n\tlines\n");
  EXPECT_EQ(printable("Ångström 東京"), "Ångström 東京");
  EXPECT_EQ(printable("a\xff"), "a\xEF\xBF\xBD");
}

TEST(Printable, LongLinesLoseTheirMiddle) {
  EXPECT_EQ(printable("short\nabcdefghijkl\n", 6), "short\nabc ... 6 characters ... jkl\n");
  EXPECT_EQ(printable("éééé", 4), "éééé");
  EXPECT_EQ(printable("ééééé", 4), "éé ... 1 characters ... éé");
}

/// A model of one node with a name that nobody wants to see.
class NamesTest : public tests::FolderTest {
 protected:
  std::string model(const std::string& op, const std::string& name) const {
    onnx::ModelProto model;
    model.set_ir_version(8);
    model.add_opset_import()->set_version(17);
    onnx::GraphProto& graph = *model.mutable_graph();
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(op);
    node.set_name(name);
    node.add_input("x");
    node.add_output(name);
    for (auto* port : {graph.add_input(), graph.add_output()}) {
      port->set_name(port == &graph.input(0) ? "x" : name);
      auto& type = *port->mutable_type()->mutable_tensor_type();
      type.set_elem_type(onnx::TensorProto::FLOAT);
      type.mutable_shape()->add_dim()->set_dim_value(4);
    }
    return write("model.onnx", model.SerializeAsString());
  }
};

TEST_F(NamesTest, OfAModelDoNotSteerTheTerminal) {
  for (const std::string op : {"Relu", "NoSuchOperator"}) {
    const tests::ProgramResult result = run_bertcl({"inspect", model(op, "\x1b]0;owned\a\r")});
    EXPECT_EQ(result.code, op == "Relu" ? 0 : 2) << result.err;
    for (const char* steering : {"\x1b", "\a", "\r"}) {
      EXPECT_THAT(result.out, Not(HasSubstr(steering))) << op;
      EXPECT_THAT(result.err, Not(HasSubstr(steering))) << op;
    }
    EXPECT_THAT(op == "Relu" ? result.out : result.err, HasSubstr("\\x1b]0;owned\\x07\\x0d"));
  }
}

TEST_F(NamesTest, OfMegabytesAreCutInMessages) {
  const tests::ProgramResult result =
      run_bertcl({"inspect", model("NoSuchOperator", std::string(3 << 20, 'n'))});
  EXPECT_EQ(result.code, 2);
  EXPECT_LT(result.err.size(), 5000u);
  EXPECT_THAT(result.err, AllOf(HasSubstr("NoSuchOperator"), HasSubstr("characters")));
}

using FullDevice = tests::FolderTest;

TEST_F(FullDevice, FailsEveryCommandThatWritesToIt) {
  for (const std::string& arguments :
       std::vector<std::string>{"devices", "devices --json -", "inspect " + tests::kModel,
                                "inspect --json - " + tests::kModel,
                                "answer --json - " + tests::kModel + " -q 'Who maintains OpenCL?'",
                                "--help", "--version"}) {
    const int status =
        std::system(fmt::format("{} {} >/dev/full 2>{}", tests::built_file("bertcl").string(),
                                arguments, path("err"))
                        .c_str());
    EXPECT_EQ(WEXITSTATUS(status), 2) << arguments;
    EXPECT_THAT(read(path("err")), HasSubstr("bertcl: standard output: cannot write")) << arguments;
  }
}

// Above 128: a signal ended the program.
int code_of(const std::string& arguments) {
  const int status =
      std::system(fmt::format("{} {}", tests::built_file("bertcl").string(), arguments).c_str());
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(ClosedStreams, AreNoCrashWhereAMessageIsDue) {
  for (const std::string to : {"2>&-", "2>/dev/full", ">&- 2>&-", "<&- >&- 2>&-"}) {
    EXPECT_EQ(code_of("inspect absent.onnx " + to), 2) << to;
    EXPECT_EQ(code_of("no_such_command " + to), 2) << to;
    EXPECT_EQ(code_of("devices " + to), to.starts_with("2") ? 0 : 2) << to;
  }
}

TEST(ClosedStreams, AreNotTheNumbersOfFilesThatAreOpenedLater) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(stream);
    open_standard_streams();
    char byte = 'x';
    const bool fail = read(STDIN_FILENO, &byte, 1) < 0 && write(STDOUT_FILENO, &byte, 1) < 0 &&
                      write(STDERR_FILENO, &byte, 1) < 0;
    _exit(fail && open("/dev/null", O_RDONLY) > STDERR_FILENO ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace bertcl::tools
