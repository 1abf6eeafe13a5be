// SPDX-License-Identifier: Apache-2.0
// Many clients that hang up, read slowly or ask for more than the server can do: what it answers
// them, and that it holds nothing of them afterwards.
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "tests/serve/clients.hpp"
#include "tests/serve/holdings.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::serve::tests {
namespace {

/// A request whose reply is more than the system takes for a client that does not read.
const std::string& large_request() {
  static const std::string body = body_of(std::vector<std::string>(32, text_of(240)));
  return body;
}

/// The size of that reply.
std::size_t large_reply(const TestServer& server) {
  const auto reply = server.client().Post("/embed_all", large_request(), kJson);
  EXPECT_TRUE(reply && reply->status == 200) << (reply ? reply->body : "no reply");
  return reply ? reply->body.size() : 0;
}

TEST(Overload, AThousandClientsHangUp) {
  TestServer server({.server = {.threads = 64}, .batcher = {.max_queue_requests = 2000}});
  const std::string body = body_of(text_of(40)), expected = answer(server, body);
  EXPECT_THAT(expected, StartsWith("200 "));
  const Holdings before(server, 64);
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
        EXPECT_THAT(client.receive(), HasSubstr(" 200 "));
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

TEST(Overload, BodiesWithoutTheKeyTakeNoMemory) {
  TestServer server({.service = {.api_key = "secret"}, .server = {.payload_limit = 80'000'000}});
  const std::string part(1'000'000, ' ');
  RawConnection client(server.port());
  client.send("POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 64000000\r\n\r\n");
  const double before = allocated_mb();
  for (int i = 0; i < 63; ++i) client.send(part);
  EXPECT_LT(allocated_mb(), before + kMaxGrowth);
  client.send(part);
  EXPECT_THAT(client.reply(), HasSubstr(" 401 "));
  client.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.reply(), HasSubstr(" 200 ")) << "the body has been read";
}

// Their numbers are reused by the next connections.
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
  const auto files = entries("/proc/self/fd");
  const std::string body = body_of(text_of(40)), expected = answer(server, body);
  const std::size_t whole = large_reply(server);
  ASSERT_GT(whole, 1'000'000u);
  const auto stall = [&] {
    std::vector<RawConnection> readers;
    for (int i = 0; i < 12; ++i) {
      readers.emplace_back(server.port(), 4096);
      for (int k = 0; k < 4; ++k) readers.back().post("/embed_all", large_request());
    }
    for (int i = 0; i < 8; ++i) EXPECT_EQ(answer(server, body), expected);
    EXPECT_TRUE(eventually([&] { return entries("/proc/self/fd") <= files + 12; }))
        << "given up after io_seconds";
    for (RawConnection& reader : readers) EXPECT_LT(reader.all().size(), 4 * whole);
  };
  stall();  // each thread has had a large reply, whose memory it keeps
  const Holdings before(server, 16);
  stall();
  EXPECT_EQ(answer(server, body), expected);
  before.check();
}

TEST(Overload, ClientsThatNeverReadAreClosedAfterTheWriteTimeout) {
  constexpr std::size_t kClients = 6;
  TestServer server({.server = {.threads = kClients + 2, .io_seconds = 1}});
  const auto files = entries("/proc/self/fd");  // while no connection is open
  const std::string body = body_of(text_of(40)), expected = answer(server, body);
  const std::size_t whole = large_reply(server);
  const double reply_mb = static_cast<double>(whole) / 1e6, before = allocated_mb();
  const std::size_t replies = server.answered().size();
  std::vector<RawConnection> silent;
  for (std::size_t i = 0; i < kClients; ++i) {
    silent.emplace_back(server.port(), 4096);
    for (int k = 0; k < 4; ++k) silent.back().post("/embed_all", large_request());
  }
  ASSERT_TRUE(eventually([&] { return server.answered().size() >= replies + kClients; }));
  const auto begin = std::chrono::steady_clock::now();
  int answered = 0;
  const auto own_ends = static_cast<std::ptrdiff_t>(kClients);
  while (entries("/proc/self/fd") > files + own_ends && seconds_since(begin) < 60) {
    EXPECT_EQ(answer(server, body), expected);
    EXPECT_LT(allocated_mb(), before + 4 * kClients * reply_mb);
    ++answered;
  }
  EXPECT_GT(answered, 3) << "others are answered meanwhile";
  EXPECT_THAT(seconds_since(begin), AllOf(testing::Gt(0.5), testing::Lt(30)));
  // Runs of new sizes have allocated something, too.
  EXPECT_TRUE(eventually([&] { return allocated_mb() < before + kClients * reply_mb / 3; }))
      << allocated_mb() << " MB, " << before << " MB at first, replies of " << reply_mb << " MB";
  for (const RawConnection& client : silent) EXPECT_LT(client.all().size(), 4 * whole);
}

TEST(Overload, IdleConnectionsKeepNothingOfTheirReplies) {
  TestServer server({.server = {.keep_alive_seconds = 60}});
  const std::string body = body_of("a");
  const std::size_t whole = large_reply(server);
  constexpr int kClients = 16;
  std::vector<RawConnection> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back(server.port());
    clients.back().post("/embed", body);
    EXPECT_THAT(clients.back().reply(), HasSubstr(" 200 "));
  }
  const double before = allocated_mb();
  for (const RawConnection& client : clients) {
    client.post("/embed_all", large_request());
    EXPECT_GT(client.reply().size(), whole);
  }
  const double replies_mb = kClients * static_cast<double>(whole) / 1e6;
  EXPECT_TRUE(eventually([&] { return allocated_mb() < before + replies_mb / 8; }))
      << allocated_mb() << " MB, " << before << " MB before replies of " << replies_mb << " MB";
  for (const RawConnection& client : clients) {
    client.post("/embed", body);
    EXPECT_THAT(client.reply(), HasSubstr(" 200 ")) << "it was idle, not closed";
  }
}

TEST(Overload, HealthIsAnsweredWhileTheQueueIsFull) {
  TestServer server;
  const std::string body = body_of("a");
  const Batcher& batcher = server.service().models().front()->batcher();
  const std::size_t places = batcher.options().max_queue_requests;
  std::vector<RawConnection> clients;
  HeldModel held(server);
  while (clients.size() < places) {
    clients.emplace_back(server.port());
    clients.back().post("/embed", body);
  }
  ASSERT_TRUE(eventually([&] { return batcher.depth().requests == places; }));
  EXPECT_EQ(server.client().Post("/embed", body, kJson)->status, 429);
  EXPECT_EQ(server.client().Get("/health")->status, 200);
  held.release();
  for (const RawConnection& client : clients) EXPECT_THAT(client.reply(), HasSubstr(" 200 "));
}

TEST(Overload, BodiesBeyondTheBudgetWait) {
  TestServer server({.service = {.body_budget = 100}});
  auto others = server.service().budget().take(100, std::chrono::milliseconds(0));
  std::vector<RawConnection> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(server.port());
    clients.back().post("/embed", body_of("a"));
  }
  EXPECT_EQ(server.client().Get("/health")->status, 200);
  clients.pop_back();  // it is not waited for
  ASSERT_TRUE(eventually([&] { return server.answered().size() == 2; }));
  EXPECT_EQ(server.answered()[1].status, 499);
  others.reset();
  for (const RawConnection& client : clients) EXPECT_THAT(client.reply(), HasSubstr(" 200 "));
}

TEST(Overload, BodiesInTheQueueTakeNothingOfTheBudget) {
  const std::string body = body_of("a");
  TestServer server({.service = {.body_budget = body.size()}});
  const Batcher& batcher = server.service().models().front()->batcher();
  std::vector<RawConnection> clients;
  HeldModel held(server);
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(server.port());
    clients.back().post("/embed", body);
  }
  EXPECT_TRUE(eventually([&] { return batcher.depth().requests == 3; }));
  held.release();
  for (const RawConnection& client : clients) EXPECT_THAT(client.reply(), HasSubstr(" 200 "));
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
  const Holdings before(server, 32);
  for (int round = 0; round < 25; ++round) overload();
  before.check();
}

TEST(Overload, AllWaitsOfARequestEndTogether) {
  TestServer server({.service = {.timeout = std::chrono::milliseconds(1500)}});
  const HeldModel held(server);
  auto bodies = std::make_optional(
      *server.service().budget().take(100'000'000, std::chrono::milliseconds(0)));
  const auto begin = std::chrono::steady_clock::now();
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    bodies.reset();
  });
  EXPECT_THAT(answer(server, body_of("a")), HasSubstr("504 "));
  EXPECT_THAT(seconds_since(begin), testing::AllOf(testing::Ge(1.4), testing::Lt(2.6)))
      << "1.5 s for both the budget and the queue, not for each";
  later.join();
}

TEST(Overload, TokenizingEndsInTime) {
  TestService service({.models = {"vectors", "score"}, .service = {.timeout = {}}});
  const std::vector<std::string> texts = {"short", "another one"};
  for (const char* path : {"/tokenize", "/embed"})
    EXPECT_EQ(service.status(path, {{"inputs", texts}}), 504) << path;
  EXPECT_EQ(service.status("/rerank", {{"query", "short"}, {"texts", texts}}), 504);
  EXPECT_EQ(service.service().models().front()->batcher().depth().requests, 0u);
}

}  // namespace
}  // namespace bertcl::serve::tests
