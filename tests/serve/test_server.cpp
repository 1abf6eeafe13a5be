// SPDX-License-Identifier: Apache-2.0
// The server on a port of this machine: many clients, limits, clients that go away, its end.
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <future>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

#include "serve/request_log.hpp"
#include "tests/serve/clients.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::serve::tests {
namespace {

using nlohmann::json;

TEST(Server, ManyClientsGetTheBitsOfOne) {
  TestServer server;
  std::vector<std::string> bodies, expected;
  for (int i = 0; i < 12; ++i) {
    json texts = json::array();
    for (int k = 0; k <= i % 4; ++k) texts.push_back(text_of(1 + (i * 37 + k * 11) % 200));
    bodies.push_back(body_of(texts));
    const auto reply = server.client().Post("/embed", bodies.back(), kJson);
    ASSERT_TRUE(reply);
    ASSERT_EQ(reply->status, 200) << reply->body;
    expected.push_back(reply->body);
  }
  std::atomic<int> wrong = 0;
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c)
    clients.emplace_back([&, c] {
      httplib::Client client = server.client();
      client.set_keep_alive(c % 2 == 0);
      for (std::size_t i = 0; i < 24; ++i) {
        const std::size_t which = (i * 5 + static_cast<std::size_t>(c)) % bodies.size();
        const auto reply = client.Post("/embed", bodies[which], kJson);
        if (!reply || reply->status != 200 || reply->body != expected[which]) ++wrong;
      }
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
  const auto metrics = server.client().Get("/metrics");
  ASSERT_TRUE(metrics);
  EXPECT_THAT(metrics->body, HasSubstr("bertcl_requests_total{method=\"POST\",model=\"vectors\","
                                       "route=\"/embed\",status=\"200\"} 204"));
  EXPECT_THAT(metrics->body, HasSubstr("bertcl_request_seconds_bucket{method=\"POST\""));
  EXPECT_THAT(metrics->body, HasSubstr(R"(bertcl_queue_tokens{model="vectors"} 0)"));
}

TEST(Server, AFullQueueAnswers429) {
  TestServer server({.batcher = {.max_queue_requests = 1}});
  HeldModel held(server);
  auto first = std::async(std::launch::async, [&] {
    return server.client().Post("/embed", body_of("a"), kJson)->status;
  });
  const Batcher& batcher = server.service().models().front()->batcher();
  ASSERT_TRUE(eventually([&] { return batcher.depth().requests == 1; }));
  const auto refused = server.client().Post("/embed", body_of("b"), kJson);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 429);
  EXPECT_THAT(refused->body, HasSubstr(R"("error_type":"Overloaded")"));
  EXPECT_EQ(refused->get_header_value("Retry-After"), "1");
  held.release();
  EXPECT_EQ(first.get(), 200);
}

TEST(Server, MetricsCountBothQueuesOfAModel) {
  TestServer server;
  Model& model = *server.service().models().front();
  HeldModel held(model.batcher()), held_too(model.hidden_states());
  std::vector<RawConnection> clients;
  for (const char* path : {"/embed", "/embed_all"}) {
    clients.emplace_back(server.port());
    clients.back().post(path, body_of("a"));
  }
  ASSERT_TRUE(eventually([&] { return model.depth().requests == 2; }));
  const auto metrics = server.client().Get("/metrics");
  ASSERT_TRUE(metrics);
  EXPECT_THAT(metrics->body, HasSubstr(R"(bertcl_queue_requests{model="vectors"} 2)"));
  EXPECT_THAT(metrics->body, HasSubstr(R"(bertcl_queue_tokens{model="vectors"} 6)"));
}

TEST(Server, AClientThatHangsUpLeavesTheQueue) {
  TestServer server;
  HeldModel held(server);
  const Batcher& batcher = server.service().models().front()->batcher();
  RawConnection client(server.port());
  client.post("/embed", body_of("a text"));
  ASSERT_TRUE(eventually([&] { return batcher.depth().requests == 1; }));
  client.hang_up();
  EXPECT_TRUE(eventually([&] { return batcher.depth().requests == 0; }));
  ASSERT_TRUE(eventually([&] { return server.answered().size() == 1; }));
  EXPECT_EQ(server.answered()[0].status, 499);
  EXPECT_EQ(server.answered()[0].record.error, "the client closed the connection");
  EXPECT_THAT(
      server.client().Get("/metrics")->body,
      testing::ContainsRegex("bertcl_requests_total[{].*route=\"/embed\",status=\"499\"[}] 1"));
  held.release();
  {
    RawConnection half(server.port());
    half.send("POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"inp");
  }
  { RawConnection nothing(server.port()); }
  EXPECT_EQ(server.client().Post("/embed", body_of("b"), kJson)->status, 200);
}

/// How often threads of this process went to sleep.
long times_asleep() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return used.ru_nvcsw;
}

TEST(Server, IdleConnectionsSleepWakeAndEndWithTheServer) {
  std::vector<RawConnection> clients;
  auto server = std::make_unique<TestServer>(TestOptions{.server = {.keep_alive_seconds = 60}});
  const auto ask_all = [&] {
    for (RawConnection& client : clients) {
      client.post("/embed", body_of("a"));
      EXPECT_THAT(client.until("]]"), HasSubstr("200 OK"));
    }
  };
  for (int i = 0; i < 32; ++i) clients.emplace_back(server->port());
  ask_all();
  const long before = times_asleep();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_LT(times_asleep() - before, 100);  // a look each 10 ms would be 1,600
  ask_all();
  const auto begin = std::chrono::steady_clock::now();
  server.reset();
  EXPECT_LT(seconds_since(begin), 10);
}

TEST(Server, AnIdleConnectionIsClosedInTime) {
  TestServer server({.server = {.keep_alive_seconds = 3}});
  RawConnection client(server.port());
  client.post("/embed", body_of("a"));
  EXPECT_THAT(client.receive(), HasSubstr("200 OK"));
  const auto begin = std::chrono::steady_clock::now();
  client.all();
  EXPECT_THAT(seconds_since(begin), AllOf(testing::Gt(2.5), testing::Lt(5.5)));
}

TEST(Server, AnIdleConnectionGivesItsThreadToAnother) {
  TestServer server({.server = {.threads = 2, .keep_alive_seconds = 60}});
  std::vector<RawConnection> clients;
  for (int i = 0; i < 4; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    clients.emplace_back(server.port());
    clients.back().post("/embed", body_of("a"));
    EXPECT_THAT(clients.back().receive(), HasSubstr("200 OK"));
    EXPECT_LT(seconds_since(begin), 30) << i;
  }
}

TEST(Server, AConnectionOfOneRequestIsClosedAtOnce) {
  TestServer server({.server = {.keep_alive_seconds = 60}});
  for (const char* head : {"GET /health HTTP/1.0\r\n\r\n",
                           "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"}) {
    RawConnection client(server.port());
    client.send(head);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THAT(client.all(), HasSubstr("200 OK"));
    EXPECT_LT(seconds_since(begin), 30) << head;
  }
}

TEST(Server, ARequestIsGivenUpInTime) {
  TestServer server({.service = {.timeout = std::chrono::milliseconds(60)}});
  HeldModel held(server);
  const auto reply = server.client().Post("/embed", body_of("a"), kJson);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 504);
  EXPECT_EQ(server.service().models().front()->batcher().depth().requests, 0u);
}

TEST(Server, BodiesAreBounded) {
  TestServer server({.server = {.payload_limit = 1000}});
  const auto large = server.client().Post("/embed", body_of(std::string(2000, 'a')), kJson);
  ASSERT_TRUE(large);
  EXPECT_EQ(large->status, 413);
  EXPECT_THAT(large->body, HasSubstr("the request body exceeds 1000 bytes (--payload-limit)"));
  // 1 MB of spaces in few bytes.
  httplib::Client packing = server.client();
  packing.set_compress(true);
  const auto bomb = packing.Post("/embed", body_of(std::string(1'000'000, ' ')), kJson);
  if (bomb) {
    EXPECT_EQ(bomb->status, 413);
  }
  const auto packed = packing.Post("/embed", body_of("short"), kJson);
  ASSERT_TRUE(packed);
  EXPECT_EQ(packed->status, 200);
  RawConnection chunked(server.port());
  chunked.send("POST /embed HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" +
               std::string(2000, 'a') + "\r\n0\r\n\r\n");
  EXPECT_THAT(chunked.receive(), HasSubstr("413"));
  const httplib::MultipartFormDataItems parts = {{"file", "text", "name", "text/plain"}};
  EXPECT_EQ(server.client().Post("/embed", parts)->status, 415);
  EXPECT_EQ(server.client().Post("/embed", body_of("a"), kJson)->status, 200);
}

// By `printf '{"inputs":"a"}' | gzip -9n` of gzip 1.12.
constexpr unsigned char kPacked[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
                                     0x03, 0xab, 0x56, 0xca, 0xcc, 0x2b, 0x28, 0x2d, 0x29,
                                     0x56, 0xb2, 0x52, 0x4a, 0x54, 0xaa, 0x05, 0x00, 0xb1,
                                     0x3b, 0xad, 0xc2, 0x0e, 0x00, 0x00, 0x00};

TEST(Server, BodiesAreUnpackedOrRefused) {
  TestServer server;
  const std::string plain = body_of("a"), packed(std::begin(kPacked), std::end(kPacked));
  const auto status_of = [&](httplib::Headers headers, const std::string& body) {
    const auto reply = server.client().Post("/embed", headers, body, kJson);
    return reply ? reply->status : 0;
  };
  for (const char* coding : {"gzip", "GZIP", "x-gzip", "X-Gzip"})
    EXPECT_EQ(status_of({{"Content-Encoding", coding}}, packed), 200) << coding;
  for (const char* coding : {"identity", "Identity", ""})
    EXPECT_EQ(status_of({{"Content-Encoding", coding}}, plain), 200) << coding;
  for (const char* coding : {"other", "zstd", "brotli", "gzip, gzip", "identity, other"})
    for (const std::string& body : {plain, packed})
      EXPECT_EQ(status_of({{"Content-Encoding", coding}}, body), 415) << coding;
  EXPECT_EQ(status_of({{"Content-Encoding", "identity"}, {"Content-Encoding", "other"}}, plain),
            415);
}

TEST(Server, DamagedRequestsAreRefused) {
  TestServer server;
  for (const char* text : {"nonsense\r\n\r\n", "GET\r\n\r\n", "(BREW) /embed HTTP/1.1\r\n\r\n"}) {
    RawConnection client(server.port());
    client.send(text);
    EXPECT_THAT(client.receive(), HasSubstr(" 400 ")) << text;
  }
  EXPECT_EQ(server.client().Get("/embed")->status, 405);
  EXPECT_EQ(server.client().Put("/embed", "{}", kJson)->status, 405);
  EXPECT_EQ(server.client().Delete("/embed")->status, 405);
  EXPECT_EQ(server.client().Get("/" + std::string(1000, 'x'))->status, 404);
  EXPECT_EQ(server.client().Get("/health")->status, 200);
}

TEST(Server, ABodyThatIsNotAnnouncedIsEmpty) {
  TestServer server({.server = {.io_seconds = 3600}});
  for (const char* method : {"POST", "PUT", "DELETE"}) {
    RawConnection client(server.port());
    client.send(std::string(method) + " /embed HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(client.until("\"Validation\"}"),
                HasSubstr(std::string(method) == "POST" ? " 422 " : " 405 "));
    EXPECT_EQ(client.all(), "") << "what follows may be a body";
    RawConnection empty(server.port());
    empty.send(std::string(method) + " /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    EXPECT_THAT(empty.until("\"}"), Not(HasSubstr("Connection: close")));
    empty.post("/embed", body_of("a"));
    EXPECT_THAT(empty.receive(), HasSubstr(" 200 ")) << "the connection goes on";
  }
}

TEST(Server, BodiesWhoseEndIsUnclearAreRefused) {
  TestServer server;
  for (const char* head :
       {"Content-Length: x", "Content-Length: -1", "Content-Length: +2", "Content-Length: 2 2",
        "Content-Length: 99999999999999999999", "Content-Length: 2\r\nContent-Length: 3",
        "Content-Length: 2\r\nTransfer-Encoding: chunked", "Transfer-Encoding: gzip",
        "Transfer-Encoding: gzip, chunked"}) {
    RawConnection client(server.port());
    client.send(std::string("POST /embed HTTP/1.1\r\nHost: x\r\n") + head +
                "\r\n\r\n{}GET /health HTTP/1.1\r\n\r\n");
    EXPECT_THAT(client.all(), AllOf(HasSubstr(" 400 "), Not(HasSubstr(" 200 ")))) << head;
  }
  RawConnection get(server.port());
  get.send(
      "GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 31\r\n\r\n"
      "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(get.all(), AllOf(HasSubstr(" 200 "), Not(HasSubstr("bertcl_"))))
      << "the body of a GET is not a request";
  RawConnection huge(server.port());
  huge.send("POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999999\r\n\r\n");
  EXPECT_THAT(huge.receive(), HasSubstr(" 413 ")) << "before any of it comes";
}

TEST(Server, ASlowBodyIsGivenUp) {
  TestServer server({.server = {.body_seconds = 0.05}});
  RawConnection client(server.port());
  client.send("POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{");
  std::atomic<bool> ended = false;
  std::thread drip([&] {
    for (int i = 0; i < 2000 && !ended; ++i) {
      client.try_send(" ");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  EXPECT_THAT(client.receive(), HasSubstr(" 408 "));
  ended = true;
  drip.join();
  EXPECT_EQ(server.client().Post("/embed", body_of("a"), kJson)->status, 200);
}

TEST(Server, ConnectionsWithoutAThreadWait) {
  TestServer server({.server = {.threads = 2, .waiting_connections = 2, .keep_alive_seconds = 1}});
  std::vector<std::future<int>> replies;
  for (int i = 0; i < 12; ++i)
    replies.push_back(std::async(std::launch::async, [&] {
      httplib::Client client = server.client();
      client.set_keep_alive(true);  // each holds its thread, unless it is told to close
      const auto reply = client.Post("/embed", body_of("a"), kJson);
      return reply ? reply->status : -1;
    }));
  for (auto& reply : replies) EXPECT_EQ(reply.get(), 200);
}

TEST(Server, HealthFollowsItsLife) {
  TestServer server({}, false);
  const auto loading = server.client().Get("/health");
  EXPECT_EQ(loading->status, 503);
  EXPECT_THAT(loading->body, HasSubstr("being loaded"));
  EXPECT_EQ(server.client().Post("/embed", body_of("a"), kJson)->status, 503);
  EXPECT_EQ(server.client().Get("/v2/health/live")->status, 200);
  EXPECT_EQ(server.client().Get("/metrics")->status, 200);
  server.start();
  EXPECT_EQ(server.client().Get("/health")->status, 200);
  HeldModel held(server);
  auto last = std::async(std::launch::async, [&] {
    return server.client().Post("/embed", body_of("a"), kJson)->status;
  });
  const Batcher& batcher = server.service().models().front()->batcher();
  ASSERT_TRUE(eventually([&] { return batcher.depth().requests == 1; }));
  auto drained = std::async(std::launch::async, [&] { server.service().drain(); });
  ASSERT_TRUE(eventually([&] { return server.client().Get("/health")->status == 503; }));
  const auto late = server.client().Post("/embed", body_of("b"), kJson);
  EXPECT_EQ(late->status, 503);
  EXPECT_EQ(late->get_header_value("Connection"), "close");
  held.release();
  EXPECT_EQ(last.get(), 200) << "what was queued is answered";
  drained.get();
}

TEST(Server, APortThatIsTakenIsAnError) {
  TestServer server;
  Metrics metrics;
  Service service({}, metrics);
  ServerOptions options{.port = server.port()};
  Server same_port(service, options, {});
  EXPECT_THROW(same_port.bind(), Error);
  options.host = "192.0.2.1";  // of documentation (RFC 5737)
  Server other(service, options, {});
  EXPECT_THROW(other.bind(), Error);
}

TEST(Server, RequestsAreLogged) {
  TestServer server;
  server.client().Post("/embed", body_of({"a", "b"}), kJson);
  server.client().Get("/no\nthing");
  ASSERT_TRUE(eventually([&] { return server.answered().size() == 2; }));
  const AccessLogEntry first = server.answered()[0];
  EXPECT_EQ(first.client, "127.0.0.1");
  const json line = json::parse(log_json(first, "now"));
  EXPECT_EQ(line["time"], "now");
  EXPECT_EQ(line["path"], "/embed");
  EXPECT_EQ(line["status"], 200);
  EXPECT_EQ(line["texts"], 2);
  EXPECT_EQ(line["tokens"], 6);
  EXPECT_EQ(line["model"], "vectors");
  EXPECT_FALSE(line.contains("error"));
  EXPECT_THAT(log_text(first), MatchesRegex("POST /embed 200 .* texts=2 tokens=6 vectors"));
  AccessLogEntry strange = first;
  strange.path = "/a\n\033[31m";
  strange.record.error = std::string(1000, 'x');
  EXPECT_THAT(log_text(strange), Not(HasSubstr("\n")));
  EXPECT_THAT(log_text(strange), Not(HasSubstr("\033")));
  EXPECT_LT(log_text(strange).size(), 400u);
}

}  // namespace
}  // namespace bertcl::serve::tests
