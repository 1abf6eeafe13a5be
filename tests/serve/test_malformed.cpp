// SPDX-License-Identifier: Apache-2.0
// Clients that send byte by byte, or what is not HTTP: what they are answered, that others are
// answered meanwhile, and that nothing of them is left.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "tests/serve/clients.hpp"
#include "tests/serve/holdings.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::serve::tests {
namespace {

constexpr const char* kChunked =
    "POST /embed HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";

constexpr const char* kSecond = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";

/// Bodies in chunks that RFC 9112, 7.1 does not allow.
std::vector<std::string> bad_chunks() {
  return {"2\r\n{}\r\nx\r\n0\r\n\r\n",
          "x\r\n{}\r\n0\r\n\r\n",
          "-2\r\n{}\r\n0\r\n\r\n",
          "\r\n{}\r\n0\r\n\r\n",
          "2{}\r\n0\r\n\r\n",
          "2\r\n{}{}\r\n0\r\n\r\n",
          "fffffffffffffffe\r\n{}\r\n0\r\n\r\n",
          "ffffffffffffffff\r\n{}\r\n0\r\n\r\n",
          "10000000000000002\r\n{}\r\n0\r\n\r\n",
          std::string(100'000, '0') + "x\r\n{}\r\n0\r\n\r\n"};
}

/// Heads that are too large or damaged.
std::vector<std::string> bad_heads() {
  const std::string post = "POST /embed HTTP/1.1\r\nHost: x\r\n";
  return {post + "X-Long: " + std::string(1'000'000, 'a') + "\r\nContent-Length: 2\r\n\r\n{}",
          post + std::string(1'000'000, 'a') + "\r\n\r\n",
          "POST /" + std::string(1'000'000, 'a') + " HTTP/1.1\r\n\r\n",
          std::string(1'000'000, 'a') + "\r\n\r\n",
          post + "Content-Length: 12345678901234567890123\r\n\r\n{}",
          post + "Content-Length: 0x2\r\n\r\n{}",
          "POST /embed HTTP/9.9\r\n\r\n",
          "HEAD / HTTP/9.9\r\n",
          "HEAD / HTTP/1.1\r\nX: " + std::string(9000, 'a') + "\r\n\r\n",
          std::string("\0\x16\x03\x01\r\n\r\n", 8),
          "\r\n\r\n\r\n\r\n"};
}

TEST(Malformed, ByteByByteIsARequestLikeAnother) {
  TestServer server({.server = {.threads = 20}});
  const std::string body = body_of("A cat."), expected = answer(server, body);
  const std::string length = "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  const std::string requests[] = {
      "POST /embed HTTP/1.1\r\nHost: x\r\n" + length + body,
      kChunked + ("1\r\n" + body.substr(0, 1) + "\r\n" + "5;name=value\r\n" + body.substr(1, 5)) +
          "\r\n" +
          [&] {
            char size[8];
            std::snprintf(size, sizeof(size), "%zx", body.size() - 6);
            return std::string(size);
          }() +
          "\r\n" + body.substr(6) + "\r\n0\r\n\r\n"};
  std::vector<RawConnection> writers;
  for (int i = 0; i < 16; ++i) writers.emplace_back(server.port());
  for (std::size_t at = 0; at < std::max(requests[0].size(), requests[1].size()); ++at) {
    for (std::size_t i = 0; i < writers.size(); ++i)
      if (at < requests[i % 2].size()) writers[i].send(requests[i % 2].substr(at, 1));
    if (at % 16 == 0) {
      EXPECT_EQ(answer(server, body), expected) << "others are answered meanwhile";
    }
  }
  for (std::size_t i = 0; i < writers.size(); ++i)
    EXPECT_THAT(writers[i].reply(), AllOf(HasSubstr(" 200 "), HasSubstr(expected.substr(4)))) << i;
}

/// Everything that the server answers, and the seconds until it closes the connection.
std::pair<std::string, double> answers_to(const TestServer& server, const std::string& text) {
  RawConnection client(server.port());
  client.try_send(text);
  const auto begin = std::chrono::steady_clock::now();
  std::string answers = client.all();
  return {answers, seconds_since(begin)};
}

// A proxy that reads such a request in another way would be given the answer to a second one.
TEST(Malformed, NothingIsReadAfterBadChunks) {
  TestServer server({.server = {.keep_alive_seconds = 60, .io_seconds = 1}});
  for (const std::string& chunks : bad_chunks()) {
    SCOPED_TRACE(chunks.substr(0, 40));
    const auto [answers, seconds] = answers_to(server, kChunked + chunks + kSecond);
    EXPECT_THAT(answers, AllOf(StartsWith("HTTP/1.1 4"), HasSubstr("Connection: close")));
    EXPECT_EQ(answers.rfind("HTTP/1.1 "), 0u) << answers;
    EXPECT_LT(seconds, 30);
  }
}

TEST(Malformed, NothingIsReadAfterBadHeads) {
  TestServer server({.server = {.keep_alive_seconds = 60, .io_seconds = 1}});
  for (const std::string& head : bad_heads()) {
    SCOPED_TRACE(head.substr(0, 80));
    const auto [answers, seconds] = answers_to(server, head + kSecond);
    const bool has_body = !head.starts_with("HEAD ");  // RFC 9110, 9.3.2
    EXPECT_THAT(answers, AllOf(StartsWith("HTTP/1.1 4"), HasSubstr("Connection: close"),
                               EndsWith(has_body ? R"("error_type":"Validation"})" : "\r\n\r\n")));
    EXPECT_EQ(answers.rfind("HTTP/1.1 "), 0u) << answers;
    EXPECT_EQ(answers.find("Content-Type", answers.find("Content-Type") + 1), answers.npos);
    EXPECT_LT(seconds, 30);
  }
}

// A proxy that reads them as RFC 9112 has it takes the second request for the body of the first.
TEST(Malformed, NoBodyOfAMalformedHeadIsARequest) {
  TestServer server({.server = {.keep_alive_seconds = 60, .io_seconds = 1}});
  const std::string length = std::to_string(std::string(kSecond).size());
  const std::string post = "POST /embed HTTP/1.1\r\n", host = "Host: x\r\n";
  const std::vector<std::string> heads = {
      post + host + "Content-Length : " + length,
      post + host + "Content-Length\t: " + length,
      post + host + " Content-Length: " + length,
      post + host + "Content-Length:\r\n " + length,
      post + host + "X: a\r\n\tContent-Length: " + length,
      post + host + "Content-Length: " + length + "\n",
      post + host + "X: a\nX:b\r\nX",
      post + host + "Transfer-Encoding : chunked",
      post + host + "(X): a",
      post + host + "Content-Length: " + length + std::string("\0a", 2),
      post + host + std::string("X: a\0", 5),
      post + host + "Content-Length: " + length + "\r\nTransfer-Encoding:\r\n chunked",
      post + host + "Content-Length: " + length + "\r\nX: a\r\n\tb",
      post + host + "Content-Length: " + length + "\r\ngarbage",
      post + host + "Content-Length: " + length + "\r\n: a",
      post + host + "Expect: 100-continue\r\nContent-Length: " + length + "\r\ngarbage",
      post + host + "Content-Length: " + length + "\r\nX: a\rb",
      post + host + "Content-Length: %33%33",
      post + host + "Transfer-Encoding: %63hunked",
      "GET /health HTTP/1.1\r\n" + host + "Content-Length : " + length,
      post + "X: a",
      post + host + host + "X: a",
      post + "Host:\r\nX: a",
      "GET /health HTTP/1.1\r\nX: a"};
  for (const std::string& head : heads) {
    const auto [answers, seconds] = answers_to(server, head + "\r\n\r\n" + kSecond);
    EXPECT_THAT(answers, AllOf(StartsWith("HTTP/1.1 4"), HasSubstr("Connection: close"))) << head;
    EXPECT_EQ(answers.rfind("HTTP/1.1 "), 0u) << head << answers;
    EXPECT_LT(seconds, 30);
  }
  EXPECT_THAT(answers_to(server, "GET /health HTTP/1.0\r\n\r\n").first, HasSubstr(" 200 "));
}

// The library bounds neither lines nor their number, and passes over some that it has read.
TEST(Malformed, HeadsAreBounded) {
  TestServer server({.server = {.io_seconds = 60}});
  const std::string head = "GET /health HTTP/1.1\r\nHost: x\r\n";
  for (const std::string line : {"x\n", "X: a\r\n", "x"}) {
    std::string text = head;
    while (text.size() < 100'000) text += line;
    const auto [answers, seconds] = answers_to(server, text);
    EXPECT_THAT(answers, AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("Connection: close")));
    EXPECT_LT(seconds, 30) << "it waits for no more of " << line;
  }
  std::string text = head;
  for (int i = 0; i < 8; ++i) text += "X: " + std::string(8000, 'a') + "\r\n";
  const RawConnection client(server.port());
  client.send(text + "\r\n");
  EXPECT_THAT(client.reply(), HasSubstr(" 200 "));
}

/// The beginning of a request, filled to a multiple of 64 bytes by a header.
std::string filled(const std::string& head, const std::string& body = "") {
  const std::size_t size = head.size() + std::string("X: \r\n\r\n").size() + body.size();
  return head + "X: " + std::string(64 - size % 64, 'a') + "\r\n\r\n" + body;
}

// What a buffer takes from the system ends at a multiple of 64 bytes: there begins a request.
TEST(Malformed, NoRequestRunsInABodyThatIsRefused) {
  TestServer server({.server = {.threads = 1, .io_seconds = 1}});
  const std::string post = "POST /embed HTTP/1.1\r\nHost: x\r\n",
                    length = "Content-Length: 65536\r\n";
  const std::vector<std::string> refused = {
      filled(post + length + "Content-Type: multipart/form-data; boundary=x\r\n"),
      filled(post + length + "Content-Length: 40\r\n"),
      filled(post + "Content-Length: 99999999999\r\n"),
      filled(post + "Transfer-Encoding: other\r\n"),
      filled(post + "Transfer-Encoding: chunked\r\n", "zz\r\n"),
      filled(post + length + "Content-Encoding: gzip\r\n"),
      filled("GET /embed HTTP/1.1\r\nHost: x\r\n" + length)};
  std::string body;
  while (body.size() < 65536) body += filled("GET /health HTTP/1.1\r\nHost: x\r\n");
  for (const std::string& head : refused) {
    EXPECT_THAT(answers_to(server, head + body).first,
                AllOf(StartsWith("HTTP/1.1 4"), HasSubstr("Connection: close")))
        << head;
  }
  ASSERT_TRUE(server.client().Get("/info")) << "the only thread has done with the others";
  EXPECT_EQ(server.answered().size(), refused.size() + 1);
}

TEST(Malformed, AThousandLeaveNothing) {
  TestServer server({.server = {.threads = 64, .keep_alive_seconds = 1, .io_seconds = 1}});
  const std::string body = body_of(text_of(40)), expected = answer(server, body);
  std::vector<std::string> requests = bad_heads();
  for (const std::string& chunks : bad_chunks()) requests.push_back(kChunked + chunks);
  for (const char* document :
       {"{", "[[[[", "\"", "{\"inputs\": 1e999}", "\xff\xfe", "{\"inputs\": [[[]]]}"})
    requests.push_back("POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                       std::to_string(std::string(document).size()) + "\r\n\r\n" + document);
  const auto send_all = [&](std::size_t count) {
    std::vector<RawConnection> clients;
    for (std::size_t i = 0; i < count; ++i) {
      clients.emplace_back(server.port());
      clients.back().try_send(requests[i % requests.size()]);
      if (i % 50 == 0) {
        EXPECT_EQ(answer(server, body), expected);
      }
      if (clients.size() == 40) clients.clear();
    }
  };
  send_all(2 * requests.size());
  const Holdings before(server, 64);
  send_all(1000);
  EXPECT_EQ(answer(server, body), expected);
  const auto health = server.client().Get("/health");
  ASSERT_TRUE(health);
  EXPECT_EQ(health->status, 200);
  before.check();
}

}  // namespace
}  // namespace bertcl::serve::tests
