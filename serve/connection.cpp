// SPDX-License-Identifier: Apache-2.0
// Sockets of this process by the addresses of both ends.
#include "serve/connection.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <system_error>

#include "support/parse_number.hpp"

namespace bertcl::serve {
namespace {

using GetName = int (*)(int, sockaddr*, socklen_t*);

/// One end of a socket.
class End {
 public:
  End(int socket, GetName get_name) {
    if (get_name(socket, address(), &size_) != 0) storage_.ss_family = AF_UNSPEC;
  }
  int port() const {
    if (storage_.ss_family == AF_INET)
      return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
    if (storage_.ss_family == AF_INET6)
      return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port);
    return -1;
  }
  std::string host() {
    char host[NI_MAXHOST];
    if (getnameinfo(address(), size_, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) != 0)
      return {};
    return host;
  }

 private:
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&storage_); }
  sockaddr_storage storage_{};
  socklen_t size_ = sizeof(storage_);
};

/// Calls visit(descriptor) for those that are open, until it returns true.
template <class Visit>
void visit_descriptors(const Visit& visit) {
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", gone)) {
    const auto descriptor = parse_number<int>(entry.path().filename().string());
    if (descriptor && visit(*descriptor)) return;
  }
}

}  // namespace

bool Connection::is_this_connection(int descriptor) const {
  // All connections have the server's port, so compare the client's first.
  End remote(descriptor, getpeername);
  return remote.port() == remote_port_ && remote.host() == remote_address_ &&
         End(descriptor, getsockname).port() == local_port_;
}

int Connection::socket() {
  if (socket_) return *socket_;
  socket_ = -1;
  // Of a client that has reset its connection no port is known: any socket would be taken for its.
  if (remote_port_ < 0 || local_port_ < 0) return *socket_;
  // A connection keeps its thread: look through all descriptors for its first request only.
  static thread_local int last = -1;
  if (last >= 0 && is_this_connection(last)) return *(socket_ = last);
  visit_descriptors([&](int descriptor) {
    if (!is_this_connection(descriptor)) return false;
    socket_ = last = descriptor;
    return true;
  });
  return *socket_;
}

bool Connection::is_disconnected() {
  if (socket() < 0) return false;
  pollfd ends{socket(), POLLRDHUP, 0};
  return poll(&ends, 1, 0) == 1 && (ends.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void Connection::close() {
  if (socket() < 0) return;
  shutdown(socket(), SHUT_RDWR);
  // What had come before can still be read, and the library would take it for the next request.
  char rest[16384];
  while (recv(socket(), rest, sizeof(rest), MSG_DONTWAIT) > 0) {
  }
}

Connection::WakeReason Connection::wait(std::chrono::milliseconds most, std::array<int, 2> events) {
  pollfd room{socket(), POLLOUT, 0};
  if (socket() < 0 || poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0)
    return WakeReason::client;
  pollfd ends[] = {
      {socket(), POLLIN | POLLRDHUP, 0}, {events[0], POLLIN, 0}, {events[1], POLLIN, 0}};
  const int ready = poll(ends, std::size(ends), static_cast<int>(most.count()));
  if (ready == 0) return WakeReason::timeout;
  return ready < 0 || ends[0].revents != 0 ? WakeReason::client : WakeReason::event;
}

void RequestsInWork::add(const std::string& remote_address, int remote_port) {
  const std::lock_guard lock(mutex_);
  remotes_.emplace(remote_address, remote_port);
}

void RequestsInWork::remove(const std::string& remote_address, int remote_port) {
  const std::lock_guard lock(mutex_);
  remotes_.erase({remote_address, remote_port});
}

void RequestsInWork::stop_reading_others(int local_port) {
  const std::lock_guard lock(mutex_);  // what has been read in full meanwhile waits in add()
  const auto is_other = [&](int descriptor) {
    if (End(descriptor, getsockname).port() != local_port) return false;
    End remote(descriptor, getpeername);
    return remote.port() >= 0 && !remotes_.contains({remote.host(), remote.port()});
  };
  visit_descriptors([&](int descriptor) {
    if (!is_other(descriptor)) return false;
    // Its thread may close it, and its number be that of another file then: look at a duplicate.
    const int duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (duplicate < 0) return false;
    if (is_other(duplicate)) shutdown(duplicate, SHUT_RD);
    ::close(duplicate);
    return false;
  });
}

}  // namespace bertcl::serve
