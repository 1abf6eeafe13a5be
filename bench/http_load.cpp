// SPDX-License-Identifier: Apache-2.0
// bench_http_load URL BODIES: POSTs the lines of a file to a server, by one thread that takes
// little of the processor.
//
// Closed loop: each of N connections sends its next request when the last one is answered. Open
// loop (--rate): requests are due at random times, whatever the server does (a Poisson process);
// latency counts from when a request was due, so one that waits for a connection is not counted as
// fast.
//
// HTTP is spoken by hand: libcurl's multi interface took 2 to 3 times the processor time for a
// request, and 5 times with 256 in flight, on the cores that the server needs (0.05 to 0.24 ms,
// here 0.02 to 0.05; two cores of an AMD EPYC, 2026-11-26).
//
// Percentiles cover answered requests only. Lost requests, whose connection the server closed, and
// those unanswered in the end are counted.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "tools/measure/percentile.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

struct Options {
  std::string url, bodies;
  int connections = 16;  // at most, where --rate is given
  double seconds = 10, rate = 0;
};

/// Seconds that an open loop waits for answers after its last request was due.
constexpr double kPatience = 10;

std::runtime_error system_failure(const std::string& what) {
  return std::runtime_error(what + ": " + std::generic_category().message(errno));
}

/// The result of a system call; throws if it failed.
int checked(int result, const char* call) {
  if (result < 0) throw system_failure(call);
  return result;
}

/// A descriptor that is closed in the end.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const { return number_; }

 private:
  int number_;
};

struct Url {
  sockaddr_in address{};
  std::string host, path;
};

Url parse_url(std::string_view text) {
  const std::string_view scheme = "http://";
  if (!text.starts_with(scheme)) throw std::runtime_error("the URL must begin with http://");
  text.remove_prefix(scheme.size());
  const std::size_t path = std::min(text.find('/'), text.size());
  const std::string_view host = text.substr(0, path);
  const std::size_t colon = host.find(':');
  int port = 80;
  if (colon != host.npos) {
    const char* const end = host.data() + host.size();
    const auto [parsed, error] = std::from_chars(host.data() + colon + 1, end, port);
    if (error != std::errc{} || parsed != end || port < 1 || port > 65535)
      throw std::runtime_error("the port of the URL must be 1 to 65535");
  }
  Url url{{}, std::string(host), path < text.size() ? std::string(text.substr(path)) : "/"};
  url.address.sin_family = AF_INET;
  url.address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, std::string(host.substr(0, colon)).c_str(), &url.address.sin_addr) != 1)
    throw std::runtime_error("the host of the URL must be an IPv4 address");
  return url;
}

/// Whole requests, one for each line.
std::vector<std::string> read_requests(const std::string& path, const Url& url) {
  std::ifstream file(path);
  std::vector<std::string> requests;
  for (std::string body; std::getline(file, body);)
    requests.push_back("POST " + url.path + " HTTP/1.1\r\nHost: " + url.host +
                       "\r\nContent-Type: application/json\r\nContent-Length: " +
                       std::to_string(body.size()) + "\r\n\r\n" + body);
  if (requests.empty()) throw std::runtime_error(path + ": has no line");
  return requests;
}

/// The value of a header in the head of an answer; "" if it is absent.
std::string_view header_of(std::string_view head, std::string_view name) {
  for (std::size_t begin = head.find("\r\n"); begin != head.npos;
       begin = head.find("\r\n", begin)) {
    begin += 2;
    if (head.size() < begin + name.size() + 1 || head[begin + name.size()] != ':') continue;
    if (strncasecmp(head.data() + begin, name.data(), name.size()) != 0) continue;
    std::string_view value = head.substr(begin + name.size() + 1);
    value = value.substr(0, value.find("\r\n"));
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    return value;
  }
  return {};
}

/// A connection with one request in flight at most.
struct Connection {
  Descriptor socket = Descriptor();
  const std::string* request = nullptr;  // in flight
  Clock::time_point due{};
  std::size_t sent = 0;
  bool answered_before = false;  // the server may close it at any time
  std::string answer;
};

class Load {
 public:
  explicit Load(const Options& options)
      : options_(options),
        url_(parse_url(options.url)),
        requests_(read_requests(options.bodies, url_)),
        connections_(static_cast<std::size_t>(options.connections)),
        poll_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
        timer_(checked(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
                       "timerfd_create")) {
    for (Connection& connection : connections_) idle_.push_back(&connection);
    watch(timer_.get(), EPOLLIN, nullptr);
  }

  nlohmann::ordered_json run() {
    begin_ = Clock::now();
    const auto stop = begin_ + after(options_.seconds);
    const auto give_up = stop + after(kPatience);
    next_due_ = begin_ + after(gap_(random_));
    set_timer(is_open() ? next_due_ : stop);
    std::vector<epoll_event> events(256);
    // A closed loop ends at once, as what it has in flight is not counted.
    while (Clock::now() < (is_open() ? give_up : stop)) {
      start_idle();
      if (is_open() && next_due_ >= stop && idle_.size() == connections_.size()) break;
      const bool again = !is_open() && !idle_.empty();  // some were answered at once
      const int count =
          epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), again ? 0 : 1000);
      if (count < 0 && errno != EINTR) throw system_failure("epoll_wait");
      for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[i];
        if (event.data.ptr == nullptr)
          queue_due(stop);
        else
          advance(*static_cast<Connection*>(event.data.ptr));
      }
    }
    const auto end = is_open() ? std::max(last_, begin_) : std::min(Clock::now(), stop);
    return report(Seconds(end - begin_).count());
  }

 private:
  bool is_open() const { return options_.rate > 0; }
  static Clock::duration after(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
  }

  void watch(int descriptor, std::uint32_t events, void* owner) {
    epoll_event event{events, {.ptr = owner}};
    checked(epoll_ctl(poll_.get(), EPOLL_CTL_ADD, descriptor, &event), "epoll_ctl");
  }

  void set_timer(Clock::time_point time) {
    const auto since =
        std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch());
    const itimerspec spec{{}, {since.count() / 1'000'000'000, since.count() % 1'000'000'000}};
    checked(timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr), "timerfd_settime");
  }

  /// A closed loop sends all in turn, as often each; an open one chooses.
  const std::string& next_request() {
    if (is_open()) return requests_[choice_(random_) % requests_.size()];
    return requests_[turn_++ % requests_.size()];
  }

  void queue_due(Clock::time_point stop) {
    std::uint64_t times = 0;
    if (::read(timer_.get(), &times, sizeof(times)) < 0) return;
    if (!is_open()) return;
    for (; next_due_ < stop && next_due_ <= Clock::now(); next_due_ += after(gap_(random_)))
      waiting_.emplace_back(&next_request(), next_due_);
    if (next_due_ < stop) set_timer(next_due_);
  }

  /// A closed loop starts each connection once: where answers come at once, others have their turn.
  void start_idle() {
    if (!is_open())
      for (Connection* connection : std::exchange(idle_, {}))
        start(*connection, next_request(), Clock::now());
    while (!waiting_.empty() && !idle_.empty()) {
      Connection& connection = *idle_.back();  // the last one used, so that few are needed
      idle_.pop_back();
      const auto [request, due] = waiting_.front();
      waiting_.pop_front();
      start(connection, *request, due);
    }
  }

  void connect(Connection& connection) {
    connection.socket = Descriptor(checked(
        ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP), "socket"));
    const int on = 1, socket = connection.socket.get();
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&url_.address), sizeof(url_.address)) !=
            0 &&
        errno != EINPROGRESS)
      throw system_failure(options_.url);
    watch(socket, EPOLLIN | EPOLLOUT | EPOLLET, &connection);
    connection.answered_before = false;
  }

  void start(Connection& connection, const std::string& request, Clock::time_point due) {
    if (connection.socket.get() < 0) connect(connection);
    connection.request = &request;
    connection.due = due;
    connection.sent = 0;
    connection.answer.clear();
    advance(connection);
  }

  void advance(Connection& connection) {
    if (!connection.request) {  // closed while it was idle
      char byte;
      if (::recv(connection.socket.get(), &byte, 1, MSG_PEEK) == 0)
        connection.socket = Descriptor();
      return;
    }
    const std::string& request = *connection.request;
    while (connection.sent < request.size()) {
      const ssize_t size = ::send(connection.socket.get(), request.data() + connection.sent,
                                  request.size() - connection.sent, MSG_NOSIGNAL);
      if (size < 0 && (errno == EAGAIN || errno == ENOTCONN)) return;
      if (size < 0 && errno == ECONNREFUSED) throw system_failure(options_.url);
      if (size < 0) return lose(connection);
      connection.sent += static_cast<std::size_t>(size);
    }
    for (;;) {
      const ssize_t size = ::recv(connection.socket.get(), buffer_.data(), buffer_.size(), 0);
      if (size < 0 && errno == EAGAIN) return;
      if (size <= 0) return lose(connection);
      connection.answer.append(buffer_.data(), static_cast<std::size_t>(size));
      if (is_whole(connection.answer)) return finish(connection);
    }
  }

  static bool is_whole(std::string_view answer) {
    const std::size_t end = answer.find("\r\n\r\n");
    if (end == answer.npos) return false;
    const std::string_view length = header_of(answer.substr(0, end + 2), "Content-Length");
    std::size_t size = 0;
    if (std::from_chars(length.data(), length.data() + length.size(), size).ec != std::errc{})
      throw std::runtime_error("an answer has no Content-Length");
    return answer.size() >= end + 4 + size;
  }

  void finish(Connection& connection) {
    last_ = Clock::now();
    const std::string_view head =
        std::string_view(connection.answer).substr(0, connection.answer.find("\r\n\r\n") + 2);
    const int status = std::atoi(connection.answer.c_str() + std::string_view("HTTP/1.1 ").size());
    ++statuses_[status];
    (status == 200 ? latencies_ : refusals_).push_back(Seconds(last_ - connection.due).count());
    if (header_of(head, "Connection") == "close") connection.socket = Descriptor();
    connection.answered_before = true;
    end(connection);
  }

  /// The server has closed the connection. It may do so if it was idle: the request is sent again,
  /// once, as the new connection has answered nothing.
  void lose(Connection& connection) {
    connection.socket = Descriptor();
    if (connection.answered_before && connection.answer.empty())
      return start(connection, *connection.request, connection.due);
    ++lost_;
    end(connection);
  }

  /// Starts nothing, as start() may be the caller.
  void end(Connection& connection) {
    connection.request = nullptr;
    idle_.push_back(&connection);
  }

  static nlohmann::ordered_json percentiles(std::vector<double>& seconds) {
    std::ranges::sort(seconds);
    nlohmann::ordered_json found = nlohmann::ordered_json::object();
    for (const auto& [name, percent] :
         {std::pair("p50", 50.0), {"p90", 90.0}, {"p99", 99.0}, {"max", 100.0}})
      if (!seconds.empty()) found[name] = 1000 * bertcl::tools::percentile_of(seconds, percent);
    return found;
  }

  nlohmann::ordered_json report(double seconds) {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto in_seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    nlohmann::ordered_json statuses = nlohmann::ordered_json::object();
    for (const auto& [status, count] : statuses_) statuses[std::to_string(status)] = count;
    const std::size_t open = is_open() ? waiting_.size() + connections_.size() - idle_.size() : 0;
    return {{"seconds", seconds},
            {"rate", seconds > 0 ? static_cast<double>(latencies_.size()) / seconds : 0},
            {"statuses", statuses},
            {"lost", lost_},
            {"unanswered", open},
            {"latency_ms", percentiles(latencies_)},
            {"refusal_ms", percentiles(refusals_)},
            {"cpu_seconds", in_seconds(used.ru_utime) + in_seconds(used.ru_stime)}};
  }

  const Options options_;
  const Url url_;
  const std::vector<std::string> requests_;
  std::vector<Connection> connections_;
  Descriptor poll_, timer_;
  std::mt19937_64 random_{1};
  std::exponential_distribution<double> gap_{options_.rate > 0 ? options_.rate : 1};
  std::uniform_int_distribution<std::size_t> choice_;
  std::size_t turn_ = 0, lost_ = 0;
  Clock::time_point begin_{}, next_due_{}, last_{};
  std::deque<std::pair<const std::string*, Clock::time_point>> waiting_;  // for a connection
  std::vector<Connection*> idle_;
  std::vector<char> buffer_ = std::vector<char>(1 << 16);
  std::map<int, std::size_t> statuses_;
  std::vector<double> latencies_, refusals_;
};

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  CLI::App program("POST the lines of a file to a server");
  program.add_option("URL", options.url, "http://127.0.0.1:8080/embed")->required();
  program.add_option("BODIES", options.bodies, "Lines of JSON")->required();
  program.add_option("--connections", options.connections, "Each with one request at a time")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  program.add_option("--seconds", options.seconds, "Of the load")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  program.add_option("--rate", options.rate, "Requests/s at random times; 0: as answers come")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  CLI11_PARSE(program, argc, argv);
  std::puts(Load(options).run().dump(1).c_str());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_http_load: %s\n", error.what());
  return 1;
}
