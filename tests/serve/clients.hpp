// SPDX-License-Identifier: Apache-2.0
// Clients of a server under test, also such as behave badly.
#pragma once
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "tests/serve/models.hpp"

namespace bertcl::serve::tests {

constexpr const char* kJson = "application/json";

inline std::string text_of(int words) {
  std::string text;
  for (int i = 0; i < words; ++i) text += "word" + std::to_string(i % 7) + " ";
  return text;
}

inline std::string body_of(const nlohmann::json& inputs) {
  return nlohmann::json{{"inputs", inputs}}.dump();
}

/// Waits for what another thread does; false if it does not come.
template <class Condition>
bool eventually(const Condition& condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// A connection whose bytes the test writes itself.
class RawConnection {
 public:
  /// `receive_buffer`: bytes that the system keeps for it; 0: its default.
  explicit RawConnection(int port, int receive_buffer = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0)
      setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  RawConnection(RawConnection&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  ~RawConnection() { hang_up(); }
  void send(const std::string& text) const {
    EXPECT_EQ(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  /// The server may have closed it.
  void try_send(const std::string& text) const {
    (void)!::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
  }
  void post(const std::string& path, const std::string& body) const {
    send("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body);
  }
  std::string receive() const {
    std::string text(4096, '\0');
    const ssize_t size = recv(socket_, text.data(), text.size(), 0);
    text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return text;
  }
  /// Until `end` has come: head and body may come by themselves.
  std::string until(const std::string& end) const {
    std::string text;
    while (text.find(end) == std::string::npos) {
      const std::string part = receive();
      if (part.empty()) break;
      text += part;
    }
    return text;
  }
  /// A whole reply, whose head tells its length; less if the server closes the connection.
  std::string reply() const {
    std::string text = until("\r\n\r\n");
    const std::size_t body = text.find("\r\n\r\n") + 4, at = text.find("Content-Length: ");
    const std::size_t length = at < body ? std::stoul(text.substr(at + 16)) : 0;
    for (std::string part = " "; text.size() < body + length && !part.empty(); text += part)
      part = receive();
    return text;
  }
  /// Until the server closes the connection.
  std::string all() const {
    std::string text;
    for (std::string part = receive(); !part.empty(); part = receive()) text += part;
    return text;
  }
  void end_sending() const { shutdown(socket_, SHUT_WR); }
  /// Hangs up without the end that the protocol has for it.
  void reset() {
    const linger at_once{1, 0};
    setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    hang_up();
  }
  void hang_up() {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }

 private:
  int socket_;
};

/// Holds the only executor of the first model while it lives.
class HeldModel {
 public:
  explicit HeldModel(TestServer& server)
      : HeldModel(server.service().models().front()->batcher()) {}
  explicit HeldModel(Batcher& batcher)
      : ticket_(batcher.submit(
            [this, open = opened_.get_future().share()] {
              begun_.set_value();
              open.wait();
            },
            1, {})) {
    begun_.get_future().wait();
  }
  ~HeldModel() { release(); }
  void release() {
    if (!std::exchange(released_, true)) {
      opened_.set_value();
      ticket_.wait_for(std::chrono::minutes(1));
    }
  }

 private:
  std::promise<void> begun_, opened_;
  bool released_ = false;
  Batcher::Ticket ticket_;
};

}  // namespace bertcl::serve::tests
