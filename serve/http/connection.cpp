// SPDX-License-Identifier: Apache-2.0
// Reads, writes and waits of a connection, none of which blocks but in poll().
#include "serve/http/connection.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "support/parse_number.hpp"

namespace bertcl::serve {
namespace {

/// True if the last call may succeed after another poll().
bool may_be_repeated() { return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK; }

/// poll() until `end`, whatever signals come.
int poll_until(pollfd* ends, nfds_t count, std::chrono::steady_clock::time_point end) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    const int ready = poll(ends, count, std::max(static_cast<int>(left.count()), 0));
    if (ready >= 0 || errno != EINTR) return ready;
  }
}

/// Leaves them as they are if the client has reset the connection.
void name_end(int socket, int (*get_name)(int, sockaddr*, socklen_t*), std::string& ip, int& port) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  char host[NI_MAXHOST], service[NI_MAXSERV];
  if (get_name(socket, address, &size) != 0 ||
      getnameinfo(address, size, host, sizeof(host), service, sizeof(service),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return;
  ip = host;
  port = parse_number<int>(service).value_or(port);
}

}  // namespace

Connection::~Connection() {
  shutdown(socket_, SHUT_RDWR);
  // The system would reset a connection with bytes left to read, and the reply with it. A client
  // that goes on sending gets no more than 16 MB of attention.
  for (int reads = 0; reads < 4096; ++reads)
    if (recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT) <= 0) break;
  close(socket_);
}

bool Connection::is_disconnected() const {
  return (events(POLLRDHUP, {}) & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

Connection::WakeReason Connection::wait(std::chrono::milliseconds max,
                                        std::array<int, 2> others) const {
  if (is_readable() || (events(POLLOUT, {}) & POLLOUT) == 0) return WakeReason::client;
  pollfd ends[] = {
      {socket_, POLLIN | POLLRDHUP, 0}, {others[0], POLLIN, 0}, {others[1], POLLIN, 0}};
  const int ready = poll_until(ends, std::size(ends), std::chrono::steady_clock::now() + max);
  if (ready == 0) return WakeReason::timeout;
  return ready < 0 || ends[0].revents != 0 ? WakeReason::client : WakeReason::event;
}

bool Connection::wait_readable() const { return is_readable() || events(POLLIN, io_time_) != 0; }

bool Connection::wait_writable() const {
  return (events(POLLOUT, io_time_) & POLLOUT) != 0 && is_open();
}

ssize_t Connection::read(char* to, std::size_t size) {
  if (keeps_head_) size = std::min(size, kMaxHead - head_.size());
  if (size == 0) return 0;
  while (!is_readable()) {
    if (!wait_readable()) return -1;
    const ssize_t read = recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (read < 0 && may_be_repeated()) continue;
    if (read <= 0) return read;
    begin_ = 0;
    end_ = static_cast<std::size_t>(read);
  }
  size = std::min(size, end_ - begin_);
  std::memcpy(to, buffer_.data() + begin_, size);
  begin_ += size;
  if (keeps_head_) head_.append(to, size);
  return static_cast<ssize_t>(size);
}

ssize_t Connection::write(const char* from, std::size_t size) {
  while (wait_writable()) {
    const ssize_t sent = send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0 || !may_be_repeated()) return sent;
  }
  return -1;
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  name_end(socket_, getpeername, ip, port);
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  name_end(socket_, getsockname, ip, port);
}

int Connection::events(short wanted, std::chrono::milliseconds time) const {
  pollfd end{socket_, wanted, 0};
  poll_until(&end, 1, std::chrono::steady_clock::now() + time);
  return end.revents;
}

bool Connection::is_open() const {
  char next;
  const ssize_t read = recv(socket_, &next, 1, MSG_PEEK | MSG_DONTWAIT);
  return read > 0 || (read < 0 && may_be_repeated());
}

void ReadingConnections::add(const Connection& connection) {
  const std::lock_guard lock(mutex_);
  if (stopped_) shutdown(connection.socket(), SHUT_RD);
  sockets_.insert(connection.socket());
}

void ReadingConnections::remove(const Connection& connection) {
  const std::lock_guard lock(mutex_);
  sockets_.erase(connection.socket());
}

void ReadingConnections::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (const int socket : sockets_) shutdown(socket, SHUT_RD);
}

}  // namespace bertcl::serve
