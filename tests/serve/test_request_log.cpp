// SPDX-License-Identifier: Apache-2.0
// The log of a server whose reader is slow, absent or gone.
#include "serve/request_log.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>

#include "tests/serve/clients.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::serve::tests {
namespace {

class RequestLogTest : public testing::Test {
 protected:
  RequestLogTest() {
    EXPECT_EQ(::pipe(ends_.data()), 0);
    log_ = std::make_unique<RequestLog>(false, "all", ends_[1]);
  }
  /// Leaves the other end open: a thread may still write there.
  ~RequestLogTest() override { close_reader(); }
  void close_reader() {
    if (ends_[0] >= 0) ::close(ends_[0]);
    ends_[0] = -1;
  }
  void write(int count) {
    for (int i = 0; i < count; ++i) log_->message("info", "line " + std::to_string(i));
  }
  /// So that not a single line has room.
  void fill_pipe() const {
    ::fcntl(ends_[1], F_SETFL, O_NONBLOCK);
    while (::write(ends_[1], ".", 1) == 1) {
    }
    ::fcntl(ends_[1], F_SETFL, 0);
  }
  /// What the pipe holds; "" if that is nothing for ten seconds.
  std::string read() const {
    pollfd reader = {ends_[0], POLLIN, 0};
    if (::poll(&reader, 1, 10'000) != 1) return "";
    std::string text(1 << 20, '\0');
    text.resize(static_cast<std::size_t>(::read(ends_[0], text.data(), text.size())));
    return text;
  }

  std::array<int, 2> ends_{};
  std::unique_ptr<RequestLog> log_;
};

TEST_F(RequestLogTest, LinesComeInTheirOrder) {
  write(1000);
  log_.reset();
  std::string text = read();
  for (int i = 0; i < 1000; ++i) {
    const auto end = text.find('\n');
    ASSERT_NE(end, std::string::npos);
    EXPECT_THAT(text.substr(0, end), EndsWith("Z line " + std::to_string(i)));
    text.erase(0, end + 1);
  }
  EXPECT_EQ(text, "");
}

TEST_F(RequestLogTest, NobodyWaitsForAReader) {
  const auto begin = std::chrono::steady_clock::now();
  write(20'000);  // more than the pipe and the queue hold
  log_.reset();
  EXPECT_LT(seconds_since(begin), 20) << "a second is spent on waiting for the reader";
  EXPECT_THAT(read(), HasSubstr("Z line "));
}

TEST_F(RequestLogTest, TheNewestLinesAreKept) {
  fill_pipe();
  write(20'000);
  std::string text;
  while (text.find("line 19999\n") == std::string::npos) {
    const std::string more = read();
    if (more.empty()) FAIL() << "the last line is lost";
    text += more;
  }
  EXPECT_THAT(text, HasSubstr("line 15904\n")) << "the oldest of 4,096";
  EXPECT_LE(std::ranges::count(text, '\n'), 4097) << "one was being written";
}

TEST_F(RequestLogTest, AReaderThatIsGoneCostsNoTime) {
  close_reader();
  write(10);
  const auto begin = std::chrono::steady_clock::now();
  log_.reset();
  EXPECT_LT(seconds_since(begin), 0.9);
}

}  // namespace
}  // namespace bertcl::serve::tests
