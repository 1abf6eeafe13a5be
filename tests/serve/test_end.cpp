// SPDX-License-Identifier: Apache-2.0
// The end of a server: what is asked is answered, and clients that do not go on do not delay it.
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "tests/serve/clients.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::serve::tests {
namespace {

/// Of this process: both ends of a connection that the server has accepted.
int sockets() {
  int count = 0;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    count += std::filesystem::read_symlink(entry, gone).string().starts_with("socket:");
  return count;
}

// The limits of an hour are longer than the test may take.
TEST(ServerEnd, RequestsAreAnsweredAndUnfinishedOnesAreNot) {
  TestServer server(
      {.server = {.keep_alive_seconds = 3600, .io_seconds = 3600, .body_seconds = 3600}});
  const std::string head = "POST /embed HTTP/1.1\r\nHost: x\r\n";
  RawConnection kept(server.port());
  kept.post("/embed", body_of("a"));
  EXPECT_THAT(kept.reply(), HasSubstr(" 200 "));
  const int before = sockets();
  RawConnection silent(server.port()), in_head(server.port()), in_body(server.port()),
      in_chunks(server.port()), asked(server.port());
  in_head.send(head + "Content-Le");
  in_body.send(head + "Content-Length: 100\r\n\r\n{");
  in_chunks.send(head + "Transfer-Encoding: chunked\r\n\r\n20\r\n{\"inp");
  const Batcher& batcher = server.service().models().front()->batcher();
  HeldModel held(server);
  asked.post("/embed", body_of("b"));
  ASSERT_TRUE(
      eventually([&] { return batcher.depth().requests == 1 && sockets() == before + 10; }));
  server.server().stop();
  EXPECT_EQ(kept.all(), "");
  for (const RawConnection* client : {&silent, &in_head, &in_body, &in_chunks})
    EXPECT_THAT(client->all(), Not(HasSubstr(" 200 ")));
  EXPECT_EQ(batcher.depth().requests, 1u) << "its client has not hung up";
  held.release();
  EXPECT_THAT(asked.all(), AllOf(HasSubstr(" 200 "), HasSubstr("Connection: close")));
}

TEST(ServerEnd, ConnectionsBeyondAllLimitsDoNotDelayIt) {
  TestServer server(
      {.server = {
           .threads = 1, .waiting_connections = 1, .io_seconds = 3600, .body_seconds = 3600}});
  const int before = sockets();
  std::vector<RawConnection> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back(server.port());
    clients.back().send("POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{");
  }
  // One has the thread, one waits for it, and one is accepted.
  ASSERT_TRUE(eventually([&] { return sockets() == before + 7; }));
  server.server().stop();
  for (const RawConnection& client : clients) EXPECT_THAT(client.all(), Not(HasSubstr(" 200 ")));
}

TEST(ServerEnd, AClientThatHangsUpThenLeavesTheQueue) {
  TestServer server({.server = {.keep_alive_seconds = 3600, .io_seconds = 3600}});
  const Batcher& batcher = server.service().models().front()->batcher();
  HeldModel held(server);
  RawConnection silent(server.port()), asked(server.port());
  asked.post("/embed", body_of("b"));
  ASSERT_TRUE(eventually([&] { return batcher.depth().requests == 1; }));
  server.server().stop();
  EXPECT_EQ(silent.all(), "");
  asked.hang_up();
  EXPECT_TRUE(eventually([&] { return batcher.depth().requests == 0; }));
}

}  // namespace
}  // namespace bertcl::serve::tests
