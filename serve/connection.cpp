// SPDX-License-Identifier: Apache-2.0
// Sockets of this process by the addresses of both ends.
#include "serve/connection.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <charconv>
#include <filesystem>
#include <system_error>

namespace bertcl::serve {
namespace {

struct Address {
  std::string host;
  int port = -1;
};

using GetName = int (*)(int, sockaddr*, socklen_t*);

std::optional<Address> address_of(int socket, GetName get_name) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (get_name(socket, address, &size) != 0) return std::nullopt;
  Address found;
  if (storage.ss_family == AF_INET)
    found.port = ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
  else if (storage.ss_family == AF_INET6)
    found.port = ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
  else
    return std::nullopt;
  char host[NI_MAXHOST];
  if (getnameinfo(address, size, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) == 0)
    found.host = host;
  return found;
}

}  // namespace

int Connection::socket() {
  if (socket_) return *socket_;
  socket_ = -1;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", gone)) {
    const std::string name = entry.path().filename().string();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    const auto local = address_of(descriptor, getsockname);
    if (!local || local->port != local_port_) continue;
    const auto remote = address_of(descriptor, getpeername);
    if (remote && remote->port == remote_port_ && remote->host == remote_address_)
      socket_ = descriptor;
  }
  return *socket_;
}

bool Connection::hung_up() {
  if (socket() < 0) return false;
  pollfd ends{socket(), POLLRDHUP, 0};
  return poll(&ends, 1, 0) == 1 && (ends.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void Connection::close_after_reply() {
  if (socket() >= 0) shutdown(socket(), SHUT_RDWR);
}

}  // namespace bertcl::serve
