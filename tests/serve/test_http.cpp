// SPDX-License-Identifier: Apache-2.0
// What RFC 9110 and 9112 ask of a server, where the HTTP library does something else.
#include <string>
#include <vector>

#include "serve/request_log.hpp"
#include "tests/serve/clients.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::serve::tests {
namespace {

/// All that comes until the server closes the connection, which it otherwise keeps for an hour.
std::string answer_to_head(const TestServer& server, const std::string& head) {
  RawConnection client(server.port());
  client.send(head + "\r\n\r\n");
  return client.all();
}

TEST(ServerHttp, RangesAreIgnored) {
  TestServer server;
  const auto whole = server.client().Post("/embed", body_of("a"), kJson);
  ASSERT_TRUE(whole);
  ASSERT_EQ(whole->status, 200);
  for (const char* range : {"bytes=0-9", "bytes=9999-", "bytes=0-1,3-4", "bytes=-1"}) {
    const auto part = server.client().Post("/embed", {{"Range", range}}, body_of("a"), kJson);
    ASSERT_TRUE(part) << range;
    EXPECT_EQ(part->status, 200) << range;
    EXPECT_EQ(part->body, whole->body) << range;
    EXPECT_FALSE(part->has_header("Content-Range")) << range;
    const auto refused = server.client().Post("/embed", {{"Range", range}}, "{}", kJson);
    ASSERT_TRUE(refused) << range;
    EXPECT_EQ(refused->status, 422) << range;
    EXPECT_THAT(refused->body, AllOf(HasSubstr("inputs"), EndsWith("}"))) << range;
  }
  const auto head = server.client().Head("/metrics");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->get_header_value("Accept-Ranges"), "none");
}

TEST(ServerHttp, AClientMayAskToCloseInAnySpelling) {
  TestServer server({.server = {.keep_alive_seconds = 3600}});
  for (const char* header : {"Connection: close", "Connection: Close", "Connection: CLOSE",
                             "Connection: keep-alive, close", "connection: close,TE",
                             "Connection: keep-alive\r\nConnection: \tClose "}) {
    const std::string all =
        answer_to_head(server, std::string("GET /health HTTP/1.1\r\nHost: x\r\n") + header);
    EXPECT_THAT(all, AllOf(HasSubstr(" 200 "), HasSubstr("\r\nConnection: close\r\n"))) << header;
    EXPECT_EQ(all.find("Connection: close"), all.rfind("Connection: close")) << header;
  }
  RawConnection kept(server.port());
  for (const char* header : {"Connection: keep-alive", "Connection: closed", "X: close"}) {
    kept.send(std::string("GET /health HTTP/1.1\r\nHost: x\r\n") + header + "\r\n\r\n");
    EXPECT_THAT(kept.reply(), AllOf(HasSubstr(" 200 "), Not(HasSubstr("Connection: close"))))
        << header;
  }
}

TEST(ServerHttp, AnAbsoluteFormIsServed) {
  TestServer server;
  for (const char* target : {"http://x/health", "HTTP://x:8080/health?a=b", "https://x/health"})
    EXPECT_THAT(answer_to_head(server, std::string("GET ") + target +
                                           " HTTP/1.1\r\nHost: x\r\nConnection: close"),
                HasSubstr(" 200 "))
        << target;
  EXPECT_THAT(answer_to_head(server, "GET http://x HTTP/1.1\r\nHost: x\r\nConnection: close"),
              HasSubstr("<!DOCTYPE html>"));
  EXPECT_THAT(answer_to_head(server, "GET ftp://x/health HTTP/1.1\r\nHost: x\r\nConnection: close"),
              HasSubstr(" 404 "));
}

TEST(ServerHttp, AnotherMethodIsToldWhichAreAllowed) {
  TestServer server;
  EXPECT_EQ(server.client().Get("/embed")->get_header_value("Allow"), "POST");
  const auto health = server.client().Post("/health", "{}", kJson);
  ASSERT_TRUE(health);
  EXPECT_EQ(health->status, 405);
  EXPECT_EQ(health->get_header_value("Allow"), "GET, HEAD");
  const auto root = server.client().Delete("/");
  ASSERT_TRUE(root);
  const std::string allowed = root->get_header_value("Allow");
  EXPECT_THAT(allowed, AllOf(HasSubstr("GET"), HasSubstr("HEAD"), HasSubstr("POST")));
}

TEST(ServerHttp, AMethodThatNoRouteHasIsNamed) {
  TestServer server({.service = {.api_key = "secret"}});
  const std::vector<std::string> methods = {"TRACE", "CONNECT", "PROPFIND", "get"};
  for (const std::string& method : methods)
    EXPECT_THAT(answer_to_head(server, method + " /embed?a=b HTTP/1.1\r\nHost: x"),
                AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("\r\nAllow: GET, HEAD, POST\r\n"),
                      HasSubstr("{\"error\":\"the method " + method + " is not supported")));
  ASSERT_TRUE(eventually([&] { return server.answered().size() == methods.size(); }));
  for (const AccessLogEntry& answered : server.answered()) EXPECT_EQ(answered.path, "/embed");
  EXPECT_THAT(answer_to_head(server, "PROPFIND /embed HTTP/9.9\r\nHost: x"), HasSubstr(" 400 "));
}

TEST(ServerHttp, RepliesHaveADateAndOneWordOfTheConnection) {
  TestServer server;
  const auto kept = server.client().Get("/nothing");
  ASSERT_TRUE(kept);
  EXPECT_THAT(kept->get_header_value("Date"),
              MatchesRegex("[A-Z][a-z][a-z], [0-9][0-9] [A-Z][a-z][a-z] 20[0-9][0-9] "
                           "[0-9][0-9]:[0-9][0-9]:[0-9][0-9] GMT"));
  EXPECT_THAT(answer_to_head(server, "GET /health HTTP/1.1\r\nHost: x\r\nConnection: Close"),
              AllOf(HasSubstr("\r\nConnection: close\r\n"), HasSubstr("\r\nDate: "),
                    Not(HasSubstr("Keep-Alive"))));
}

TEST(ServerHttp, LinesOfTheLogLeaveTheTerminalAlone) {
  const auto line = [](const std::string& path) { return log_text({"GET", path, "", 404, 0, {}}); };
  EXPECT_THAT(line("/a\xC2\x9B"
                   "31m"),
              StartsWith("GET /a?31m 404 "));
  EXPECT_THAT(line("/a\x9B"
                   "31m"),
              StartsWith("GET /a\uFFFD31m 404 "));
  std::string umlauts;
  for (int i = 0; i < 150; ++i) umlauts += "ä";
  EXPECT_THAT(line(umlauts), StartsWith("GET " + umlauts.substr(0, 200) + ".. 404 "));
  EXPECT_THAT(line("/" + umlauts), StartsWith("GET /" + umlauts.substr(0, 200) + ".. 404 "));
}

TEST(ServerHttp, KeysMayHavePercentSigns) {
  for (const std::string key : {"a%41b", "100%", "%", "%zz%2", "a+b", "%u0041"}) {
    TestServer server({.service = {.api_key = key}});
    const auto status = [&](const std::string& given) {
      const httplib::Headers headers = {{"Authorization", "Bearer " + given}};
      const auto reply = server.client().Get("/info", headers);
      return reply ? reply->status : 0;
    };
    EXPECT_EQ(status(key), 200) << key;
    EXPECT_EQ(status(key + "%41"), 401) << key;
    EXPECT_EQ(status(""), 401) << key;
  }
}

TEST(ServerHttp, AHalfClosedConnectionIsCountedAsGone) {
  TestServer server;
  const HeldModel held(server);  // or the answer may come before the end is seen
  RawConnection client(server.port());
  client.post("/embed", body_of("a"));
  client.end_sending();
  EXPECT_EQ(client.all(), "");
  ASSERT_TRUE(eventually([&] { return server.answered().size() == 1; }));
  EXPECT_EQ(server.answered()[0].status, 499);
}

TEST(ServerHttp, RequestsMayComeBeforeTheReplyToOthers) {
  TestServer server;
  const std::string body = body_of("a"), head = " HTTP/1.1\r\nHost: x\r\n";
  std::string all;
  for (const char* path : {"/embed", "/nothing", "/embed"})
    all += std::string("POST ") + path + head + "Content-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  RawConnection client(server.port());
  client.send(all + "GET /health" + head + "Connection: close\r\n\r\n");
  const std::string replies = client.all();
  std::vector<std::string> statuses;
  for (std::size_t at = 0; (at = replies.find("HTTP/1.1 ", at)) != replies.npos; at += 9)
    statuses.push_back(replies.substr(at + 9, 3));
  EXPECT_THAT(statuses, ElementsAre("200", "404", "200", "200"));
}

TEST(ServerHttp, PathsMayHaveAnyByte) {
  TestServer server;
  const std::string end = " HTTP/1.1\r\nHost: x\r\nConnection: close";
  EXPECT_THAT(answer_to_head(server, "GET /a%00b%0Ac" + end),
              AllOf(HasSubstr(" 404 "), HasSubstr(R"(unknown path /a\u0000b\nc)")));
  EXPECT_THAT(answer_to_head(server, "GET /v1/models/a%00b" + end),
              AllOf(HasSubstr(" 404 "), HasSubstr(R"(unknown model 'a\u0000b' (choose from)")));
  EXPECT_THAT(answer_to_head(server, "POST /a%0Ab" + end),
              AllOf(HasSubstr(" 404 "), HasSubstr(R"(unknown path /a\nb)")));
}

TEST(ServerHttp, RefusedBodiesCountForTheirRoute) {
  TestServer server({.server = {.payload_limit = 100}});
  const std::string large(200, 'a');
  EXPECT_EQ(server.client().Post("/embed", large, kJson)->status, 413);
  EXPECT_EQ(server.client().Post("/v2/models/a/infer", large, kJson)->status, 413);
  EXPECT_EQ(server.client().Post("/nothing", large, kJson)->status, 413);
  EXPECT_EQ(server.client().Post("/embed", {{"Content-Encoding", "zstd"}}, "{}", kJson)->status,
            415);
  const std::string post = "POST /embed HTTP/1.1\r\nHost: x\r\n";
  EXPECT_THAT(answer_to_head(server, post + "Content-Length: x"), HasSubstr(" 400 "));
  EXPECT_THAT(answer_to_head(server, post + "Content Length: 2"), HasSubstr(" 400 "));
  const std::string metrics = server.client().Get("/metrics")->body;
  for (const char* counted :
       {R"(route="/embed",status="413"} 1)", R"(route="/v2/models/{}/infer",status="413"} 1)",
        R"(route="none",status="413"} 1)", R"(route="/embed",status="415"} 1)",
        R"(route="/embed",status="400"} 2)"})
    EXPECT_THAT(metrics, HasSubstr(std::string(R"({method="POST",model="",)") + counted));
}

// Load balancers of AWS and nginx reuse a connection for 60 s: they have to end it first.
TEST(ServerHttp, IdleConnectionsAreKeptLongerThanByProxies) {
  EXPECT_GT(ServerOptions{}.keep_alive_seconds, 60);
  TestServer server;
  RawConnection client(server.port());
  client.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.reply(), HasSubstr("\r\nKeep-Alive: timeout=75\r\n"));
}

TEST(ServerHttp, RequestsKeepTheIdThatAProxyGaveThem) {
  TestServer server;
  const auto id_of = [&](const std::string& id) {
    return server.client().Get("/health", {{"X-Request-Id", id}})->get_header_value("X-Request-Id");
  };
  EXPECT_EQ(id_of("7f3a-b"), "7f3a-b");
  EXPECT_EQ(id_of(std::string(129, 'a')), "");
  EXPECT_EQ(id_of("a b"), "");
  EXPECT_FALSE(server.client().Get("/health")->has_header("X-Request-Id"));
  RawConnection raw(server.port());  // the library's client decodes values, too
  raw.send("GET /health HTTP/1.1\r\nHost: x\r\nX-Request-Id: 7f%2Fa%41%\r\n\r\n");
  EXPECT_THAT(raw.reply(), HasSubstr("\r\nX-Request-Id: 7f%2Fa%41%\r\n"));
  ASSERT_TRUE(eventually([&] { return server.answered().size() == 5; }));
  const auto line = [&](std::size_t i) {
    return nlohmann::json::parse(log_json(server.answered()[i], "now"));
  };
  EXPECT_EQ(line(0)["id"], "7f3a-b");
  EXPECT_FALSE(line(1).contains("id"));
  EXPECT_EQ(line(0)["level"], "info");
  EXPECT_THAT(log_text(server.answered()[0]), HasSubstr(" id=7f3a-b"));
  EXPECT_THAT(log_text(server.answered()[1]), Not(HasSubstr("id=")));
}

TEST(ServerHttp, ProbesNeedNotBeLogged) {
  const auto levels = [](const std::string& route, int status) {
    std::string logged;
    const AccessLogEntry answered{"GET", route, "", status, 0, {.route = route}};
    for (const char* level : {"all", "requests", "errors", "none"})
      if (is_logged(answered, level)) logged += std::string(level) + ' ';
    return logged;
  };
  EXPECT_EQ(levels("/embed", 200), "all requests ");
  EXPECT_EQ(levels("/embed", 413), "all requests errors ");
  for (const char* route : {"/health", "/ping", "/metrics", "/v2/health/live", "/v2/health/ready",
                            "/v2/models/{}/ready", "/v2/models/{}/versions/{}/ready"}) {
    EXPECT_EQ(levels(route, 200), "all ");
    EXPECT_EQ(levels(route, 503), "all requests errors ");
  }
}

}  // namespace
}  // namespace bertcl::serve::tests
