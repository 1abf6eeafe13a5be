// SPDX-License-Identifier: Apache-2.0
// Many clients that hang up, read slowly or ask for more than the server can do: what it answers
// them, and that it holds nothing of them afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <vector>

#include "tests/serve/clients.hpp"

namespace bertcl::serve {
namespace {

using nlohmann::json;
using tests::body_of;
using tests::eventually;
using tests::HeldModel;
using tests::kJson;
using tests::RawConnection;
using tests::TestServer;
using tests::text_of;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kMostGrowth = 1024;  // MB; what is freed is kept for a while
#else
constexpr double kMostGrowth = 48;
#endif

double resident_mb() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

std::ptrdiff_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

/// What a server holds while nobody asks for anything.
class Holdings {
 public:
  explicit Holdings(TestServer& server) : server_(server) {}
  /// Fails the test if there is more than at first.
  void check() const {
    const Batcher& batcher = server_.service().models().front()->batcher();
    EXPECT_TRUE(eventually([&] { return batcher.depth().requests == 0; }));
    EXPECT_EQ(batcher.depth().tokens, 0u);
    EXPECT_TRUE(eventually([&] { return entries("/proc/self/fd") <= files_; }))
        << entries("/proc/self/fd") << " files are open, " << files_ << " at first";
    EXPECT_LE(entries("/proc/self/task"), threads_);
    EXPECT_LT(resident_mb(), memory_ + kMostGrowth) << memory_ << " MB at first";
  }

 private:
  TestServer& server_;
  std::ptrdiff_t files_ = entries("/proc/self/fd"), threads_ = entries("/proc/self/task");
  double memory_ = resident_mb();
};

std::string answer(const TestServer& server, const std::string& body) {
  const auto reply = server.client().Post("/embed", body, kJson);
  return reply ? std::to_string(reply->status) + ' ' + reply->body : "no reply";
}

TEST(Overload, AThousandClientsHangUp) {
  TestServer server({.batcher = {.max_queue_requests = 2000}});
  const std::string body = body_of(text_of(40)), expected = answer(server, body);
  EXPECT_THAT(expected, testing::StartsWith("200 "));
  const Holdings before(server);
  for (int i = 0; i < 700; ++i) {
    RawConnection client(server.port());
    switch (i % 7) {
      case 0:
        break;
      case 1:
        client.send("POST /emb");
        break;
      case 2:
        client.send("POST /embed HTTP/1.1\r\nHost: x\r\nContent-Le");
        break;
      case 3:
        client.send("POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"inp");
        break;
      case 4:
        client.send(
            "POST /embed HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n{");
        break;
      case 5:
        client.post("/embed", body);
        break;
      default:  // in the middle of the reply
        client.post("/embed", body);
        EXPECT_THAT(client.receive(), testing::HasSubstr(" 200 "));
    }
  }
  {
    HeldModel held(server);
    for (int i = 0; i < 300; ++i) RawConnection(server.port()).post("/embed", body);
    const Batcher& batcher = server.service().models().front()->batcher();
    EXPECT_TRUE(eventually([&] {
      return server.answered().size() >= 300 && batcher.depth().requests == 0;
    })) << "they leave the queue while the model is busy";
  }
  EXPECT_EQ(answer(server, body), expected);
  before.check();
}

// The port of such a client is not known anymore when its connection is to be closed.
TEST(Overload, ResetConnectionsCloseNoOther) {
  TestServer server;
  const std::string body = body_of(text_of(5)), expected = answer(server, body);
  for (int i = 0; i < 200; ++i) {
    RawConnection client(server.port());
    client.send("GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    client.reset();
  }
  for (int i = 0; i < 20; ++i) ASSERT_EQ(answer(server, body), expected) << i;
}

TEST(Overload, SlowReadersHoldNobodyUp) {
  TestServer server({.server = {.threads = 16, .io_seconds = 1}});
  const std::string body = body_of(text_of(40)), expected = answer(server, body);
  const std::string large = body_of(std::vector<std::string>(32, text_of(240)));
  const auto whole = server.client().Post("/embed_all", large, kJson);
  ASSERT_TRUE(whole);
  ASSERT_EQ(whole->status, 200) << whole->body;
  ASSERT_GT(whole->body.size(), 1'000'000u);
  const auto stall = [&] {
    std::vector<RawConnection> readers;
    for (int i = 0; i < 12; ++i) {
      readers.emplace_back(server.port(), 4096);
      // More than the system takes for a client that does not read.
      for (int k = 0; k < 4; ++k) readers.back().post("/embed_all", large);
    }
    for (int i = 0; i < 8; ++i) EXPECT_EQ(answer(server, body), expected);
    for (RawConnection& reader : readers)
      EXPECT_LT(reader.all().size(), 4 * whole->body.size()) << "given up after io_seconds";
  };
  stall();  // each thread has had a large reply, whose memory it keeps
  const Holdings before(server);
  stall();
  EXPECT_EQ(answer(server, body), expected);
  before.check();
}

TEST(Overload, ThreeTimesTheCapacityIsRefusedAndForgotten) {
  constexpr std::size_t kCapacity = 8;
  TestServer server({.server = {.threads = 32}, .batcher = {.max_queue_requests = kCapacity}});
  const std::string body = body_of(text_of(40)), expected = answer(server, body);
  const Batcher& batcher = server.service().models().front()->batcher();
  const auto overload = [&] {
    HeldModel held(server);
    std::vector<std::future<std::string>> replies;
    for (std::size_t i = 0; i < 3 * kCapacity; ++i)
      replies.push_back(std::async(std::launch::async, [&] {
        const auto reply = server.client().Post("/embed", body, kJson);
        if (!reply) return std::string("none");
        if (reply->status == 429) return "429 " + reply->get_header_value("Retry-After");
        return std::to_string(reply->status) + ' ' + reply->body;
      }));
    const auto done = [](const std::future<std::string>& reply) {
      return reply.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    };
    EXPECT_TRUE(eventually(
        [&] { return std::ranges::count_if(replies, done) == 2 * static_cast<int>(kCapacity); }));
    EXPECT_EQ(batcher.depth().requests, kCapacity);
    held.release();
    std::size_t answered = 0, refused = 0;
    for (auto& reply : replies) {
      const std::string text = reply.get();
      answered += text == expected;
      refused += text == "429 1";
    }
    EXPECT_EQ(answered, kCapacity);
    EXPECT_EQ(refused, 2 * kCapacity);
    EXPECT_EQ(answer(server, body), expected) << "the next one is answered";
  };
  overload();
  const Holdings before(server);
  for (int round = 0; round < 25; ++round) overload();
  before.check();
}

}  // namespace
}  // namespace bertcl::serve
