// SPDX-License-Identifier: Apache-2.0
// Tables, numbers as text, JSON files, the progress line.
#include "tools/terminal/output.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bertcl/error.hpp"
#include "program_runner.hpp"
#include "support/pending_file.hpp"
#include "tests/support/matchers.hpp"
#include "tools/terminal/progress.hpp"

namespace bertcl::tools {
namespace {

TEST(Table, AlignsColumnsByCodePoints) {
  Table table({"name", ">ms", "note"});
  table.add({"gemm", "1.5", "Å"});
  table.add({"é", "10.25", "x"});
  EXPECT_EQ(table.str(),
            "name     ms  note\n"
            "gemm    1.5  Å\n"
            "é     10.25  x\n");
  EXPECT_THROW(table.add({"one cell"}), std::logic_error);
}

TEST(Text, Numbers) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(10570), "10,570");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(counted(0, "reviews"), "0 reviews");
  EXPECT_EQ(counted(1, "reviews"), "1 review");
  EXPECT_EQ(counted(1, "sentences"), "1 sentence");
  EXPECT_EQ(counted(1, "launches"), "1 launch");
  EXPECT_EQ(counted(1, "biases"), "1 bias");
  EXPECT_EQ(counted(10570, "questions"), "10,570 questions");
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(1500), "1.5 kB");
  EXPECT_EQ(bytes_text(45'254'551), "45.3 MB");
  EXPECT_EQ(bytes_text(999'999'999), "1.0 GB");
  EXPECT_EQ(bytes_cell(0), "");
  EXPECT_EQ(bytes_cell(1500), "1.5 kB");
  EXPECT_EQ(operations_text(0), "");
  EXPECT_EQ(operations_text(500), "0.5 kOP");
  EXPECT_EQ(operations_text(999'600), "1 MOP");
  EXPECT_EQ(operations_text(1.234e9), "1.23 GOP");
  EXPECT_EQ(duration_text(0.0451), "45 ms");
  EXPECT_EQ(duration_text(12.34), "12.3 s");
  EXPECT_EQ(duration_text(59.99), "1 min 00 s");
  EXPECT_EQ(duration_text(185), "3 min 05 s");
  EXPECT_EQ(duration_text(3725), "1 h 02 min");
}

using OutputTest = tests::FolderTest;

TEST_F(OutputTest, WritesWholeJsonFiles) {
  write_json(path("a.json"), {{"text", "\xff"}, {"x", 1}});
  EXPECT_EQ(read_json(path("a.json")), (nlohmann::json{{"text", "\xEF\xBF\xBD"}, {"x", 1}}));
  EXPECT_THROW(write_json(path("no_folder/a.json"), {{"x", 1}}), Error);
  EXPECT_EQ(files(), std::vector<std::string>{"a.json"}) << "a temporary file is left";
}

TEST_F(OutputTest, WritesThroughLinksAndIntoPipes) {
  const std::string target = write("target.json", "{}");
  std::filesystem::create_symlink("target.json", path("link.json"));
  write_json(path("link.json"), {{"x", 1}});
  EXPECT_TRUE(std::filesystem::is_symlink(path("link.json")));
  EXPECT_EQ(read_json(target), (nlohmann::json{{"x", 1}}));

  std::filesystem::create_symlink("new.json", path("dangling.json"));
  check_writable(path("dangling.json"));
  write_json(path("dangling.json"), {{"x", 2}});
  EXPECT_TRUE(std::filesystem::is_symlink(path("dangling.json")));
  EXPECT_EQ(read_json(path("new.json")), (nlohmann::json{{"x", 2}}));
  std::filesystem::create_symlink("none/new.json", path("far.json"));
  EXPECT_THAT([&] { check_writable(path("far.json")); },
              ThrowsMessage<Error>(HasSubstr("none: No such file")));
  EXPECT_THAT([&] { check_writable(target + "/x.json"); },
              ThrowsMessage<Error>(HasSubstr(target + ": Not a directory")));
  std::filesystem::create_symlink("loop", path("loop"));
  EXPECT_THAT([&] { write_file(path("loop"), ""); },
              ThrowsMessage<Error>(HasSubstr("cannot write: Too many levels of symbolic links")));
  EXPECT_THAT([&] { check_writable(path("loop")); },
              ThrowsMessage<Error>(HasSubstr("cannot write: Too many levels of symbolic links")));
  std::filesystem::create_symlink(std::string(250, 'n'), path("long.json"));
  EXPECT_THAT([&] { check_writable(path("long.json")); },
              ThrowsMessage<Error>(HasSubstr("its name has 250 bytes")));

  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = open(path("pipe").c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_json(path("pipe"), {{"x", 1}});
  char bytes[64] = {};
  EXPECT_GT(::read(reader, bytes, sizeof bytes - 1), 0);
  close(reader);
  EXPECT_STREQ(bytes, "{\n  \"x\": 1\n}\n");
  EXPECT_TRUE(std::filesystem::is_fifo(path("pipe"))) << "a file took the place of the pipe";
}

TEST_F(OutputTest, AReplacedFileKeepsItsPermissions) {
  namespace fs = std::filesystem;
  for (const unsigned mode : {0600u, 0640u, 0444u, 0755u}) {
    write("a.json", "{}");
    fs::permissions(path("a.json"), static_cast<fs::perms>(mode));
    write_json(path("a.json"), {{"mode", mode}});
    EXPECT_EQ(static_cast<unsigned>(fs::status(path("a.json")).permissions()), mode);
    EXPECT_EQ(read_json(path("a.json")), (nlohmann::json{{"mode", mode}}));
    fs::remove(path("a.json"));
  }
}

TEST_F(OutputTest, WritesToOpenFilesWhereTheyAre) {
  const int file = open(path("log").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(file, 0);
  const std::string name = "/dev/fd/" + std::to_string(file);
  std::filesystem::create_symlink(name, path("link"));
  std::filesystem::create_symlink("link", path("link_to_link"));
  const auto print = [&](const char* text) {
    EXPECT_GT(::write(file, text, std::strlen(text)), 0);
  };
  print("before\n");
  write_file(name, "1\n");
  print("between\n");
  write_file(path("link_to_link"), "2\n");
  print("after\n");
  close(file);
  EXPECT_EQ(read(path("log")), "before\n1\nbetween\n2\nafter\n");
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_THROW(write_file(name, "closed"), Error);
}

TEST_F(OutputTest, KnowsBeforeTheWorkWhetherAFileCanBeWritten) {
  EXPECT_NO_THROW(check_writable(path("new.json")));
  EXPECT_TRUE(files().empty());
  EXPECT_THROW(check_writable(path("no_folder/new.json")), Error);
  EXPECT_THROW(check_writable(folder_.path()), Error);
  EXPECT_THROW(check_writable(""), Error);
  EXPECT_THROW(check_writable("-"), Error) << "JSON alone goes to the terminal";
}

/// A number that no process has.
int no_process() {
  for (int pid = 4'000'000;; --pid)
    if (::kill(pid, 0) != 0 && errno == ESRCH) return pid;
}

TEST_F(OutputTest, WhatKilledProcessesHaveLeftGoes) {
  const std::string dead = std::to_string(no_process()), alive = std::to_string(::getppid());
  const std::vector<std::string> abandoned{"a." + dead + ".tmp", "a." + dead + ".part.tmp",
                                           "a." + dead + ".part.tmp.data"};
  const std::vector<std::string> kept{"a." + alive + ".tmp", "a." + dead + ".json", "a.x.tmp",
                                      "b." + dead + ".tmp", "a" + dead + ".tmp"};
  const std::string fresh = "a." + dead + ".fresh.tmp";
  for (const auto& names : {abandoned, kept})
    for (const std::string& name : names)
      std::filesystem::last_write_time(
          write(name, "x"), std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  write(fresh, "x");
  write_json(path("a"), {{"x", 1}});
  EXPECT_THAT(files(), UnorderedElementsAreArray(tests::joined(kept, {"a", fresh})));
}

TEST_F(OutputTest, TwoWritersOfOneFileDoNotMixWhatTheyWrite) {
  PendingFile first(path("a")), second(path("a"));
  first.stream() << "the first";
  second.stream() << "a second";
  for (PendingFile* file : {&first, &second}) {
    file->close();
    file->commit();
  }
  EXPECT_EQ(read(path("a")), "a second");
  EXPECT_THAT(files(), UnorderedElementsAre("a"));
}

TEST_F(OutputTest, CellsAreOneShortPrintableLine) {
  Table table({"name"});
  table.add({"a\nb\x1b"});
  table.add({std::string(1'000'000, 'n')});
  EXPECT_THAT(table.str(), HasSubstr("\na b\\x1b\n"));
  EXPECT_LT(table.str().size(), 1000u);
}

TEST(Progress, LineShowsShareRateAndTimeLeft) {
  const Progress progress("int8", "questions");
  const std::string line = progress.line(2500, 10000, 30.0, "5,000 tokens/s", 200);
  EXPECT_EQ(line,
            "int8 [======>                 ] 2,500/10,000 questions, 5,000 tokens/s, "
            "1 min 30 s left");
  EXPECT_EQ(progress.line(2500, 10000, 30.0, "", 60),
            "int8 [===>         ] 2,500/10,000 questions, 1 min 30 s left");
  EXPECT_EQ(progress.line(2500, 10000, 30.0, "", 50),
            "int8 2,500/10,000 questions, 1 min 30 s left");
  EXPECT_EQ(progress.line(2500, 10000, 30.0, "", 10), "int8 2,500");
  EXPECT_THAT(progress.line(7, 7, 1.0, "", 99), HasSubstr("========================] 7/7"));
  EXPECT_THAT(progress.line(0, 0, 0.0, "", 99), HasSubstr("0/0"));
}

}  // namespace
}  // namespace bertcl::tools
