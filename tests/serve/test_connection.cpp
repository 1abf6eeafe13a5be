// SPDX-License-Identifier: Apache-2.0
// What ends reads, writes and waits of a connection.
#include "serve/http/connection.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <string>
#include <thread>

#include "tests/serve/clients.hpp"

namespace bertcl::serve::tests {
namespace {

using std::chrono::milliseconds;

/// A connection and the descriptor of its client.
struct ConnectedPair {
  explicit ConnectedPair(milliseconds io_time) : ConnectedPair(io_time, connected()) {}
  ~ConnectedPair() { close(client); }

  static std::array<int, 2> connected() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    return ends;
  }

  const int client;
  Connection connection;

 private:
  ConnectedPair(milliseconds io_time, std::array<int, 2> ends)
      : client(ends[0]), connection(ends[1], io_time) {}
};

TEST(Connection, AWriteEndsWhereTheClientDoesNotRead) {
  ConnectedPair pair{milliseconds(50)};
  const std::string reply(8'000'000, 'x');
  auto written = std::async(std::launch::async, [&] {
    std::size_t at = 0;
    for (ssize_t sent = 1; sent > 0; at += sent > 0 ? static_cast<std::size_t>(sent) : 0)
      sent = pair.connection.write(reply.data() + at, reply.size() - at);
    return at;
  });
  EXPECT_EQ(written.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  shutdown(pair.client, SHUT_RDWR);  // ends one that has not
  EXPECT_LT(written.get(), reply.size());
}

TEST(Connection, AReadEndsWhereTheClientSendsNothing) {
  ConnectedPair pair{milliseconds(50)};
  char text[8];
  EXPECT_EQ(pair.connection.read(text, sizeof(text)), -1);
  ASSERT_EQ(send(pair.client, "abc", 3, 0), 3);
  EXPECT_EQ(pair.connection.read(text, 2), 2);
  EXPECT_EQ(pair.connection.read(text, sizeof(text)), 1) << "what is there, without a wait";
}

TEST(Connection, SignalsEndNoWait) {
  struct sigaction ignored {};
  ignored.sa_handler = [](int) {};
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGUSR1, &ignored, &before), 0);
  ConnectedPair pair{milliseconds(50)};
  const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  /// True if `wait` ends while signals come every few milliseconds, for at most that time.
  const auto ends_despite_signals = [&](milliseconds signals, const auto& wait) {
    std::atomic<bool> ended = false;
    std::thread waiting([&] {
      wait();
      ended = true;
    });
    const auto begin = std::chrono::steady_clock::now();
    while (!ended && std::chrono::steady_clock::now() < begin + signals) {
      pthread_kill(waiting.native_handle(), SIGUSR1);
      std::this_thread::sleep_for(milliseconds(2));
    }
    const bool in_time = ended;
    eventfd_write(event, 1);
    waiting.join();
    return in_time;
  };
  auto reason = Connection::WakeReason::client;
  EXPECT_TRUE(ends_despite_signals(std::chrono::seconds(20), [&] {
    reason = pair.connection.wait(milliseconds(100), {event, -1});
  }));
  EXPECT_EQ(reason, Connection::WakeReason::timeout);
  eventfd_t value = 0;
  eventfd_read(event, &value);
  EXPECT_FALSE(ends_despite_signals(milliseconds(100), [&] {
    reason = pair.connection.wait(std::chrono::minutes(10), {event, -1});
  }));
  EXPECT_EQ(reason, Connection::WakeReason::event);
  ConnectedPair slow{milliseconds(500)};
  ssize_t read = 0;
  EXPECT_TRUE(ends_despite_signals(std::chrono::seconds(5), [&] {
    char text[8];
    read = slow.connection.read(text, sizeof(text));
  })) << "after io_time";
  EXPECT_EQ(read, -1);
  close(event);
  sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace bertcl::serve::tests
