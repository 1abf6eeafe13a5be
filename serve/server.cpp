// SPDX-License-Identifier: Apache-2.0
// The HTTP server, by cpp-httplib: a thread for each connection.
#include "serve/server.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>
#include <utility>

#include "bertcl/error.hpp"
#include "serve/http/connection.hpp"
#include "serve/http/connection_pool.hpp"
#include "serve/http/request_head.hpp"
#include "serve/http/semaphore.hpp"
#include "serve/metrics.hpp"
#include "support/stopwatch.hpp"

namespace bertcl::serve {
namespace {

/// Of a body over the limit at most this many times the limit is read, so that 413 can be sent.
constexpr std::size_t kMaxDiscarded = 16;

/// A client that has just been answered may be sending its next request: ending the connection
/// would lose it, and clients do not send a POST again.
constexpr std::chrono::seconds kNotYetIdle{1};

/// Until a connection that has never sent a byte is closed.
constexpr int kFirstRequestSeconds = 5;

/// For clients that are sending a request when the server stops; containers are given 10 s for all.
constexpr std::chrono::milliseconds kGrace{2000};

/// cpp-httplib's interface of a pool; what enqueue() returns differs between its releases.
class PoolAdapter : public httplib::TaskQueue {
 public:
  PoolAdapter(ConnectionPool& pool, ReadingConnections& reading) : pool_(pool), reading_(reading) {}
  using Enqueued = decltype(std::declval<httplib::TaskQueue&>().enqueue(std::function<void()>()));
  Enqueued enqueue(std::function<void()> serve) override {
    pool_.enqueue(std::move(serve));
    return Enqueued(true);
  }
  void shutdown() override {
    if (!pool_.close(kGrace)) reading_.stop();
    pool_.shutdown();
  }

 private:
  ConnectionPool& pool_;
  ReadingConnections& reading_;
};

/// The library's answers to requests, whose caller owns the connections.
class HttpServer : public httplib::Server {
 public:
  std::function<void(int socket)> serve_connection;

  /// The library lets five connections wait for accept(); more that come at once would be dropped,
  /// and tried again a second later.
  void lengthen_backlog() { ::listen(svr_sock_, SOMAXCONN); }
  /// Reads a request and writes its reply; false if the connection ends with it.
  bool serve_request(Connection& connection, const std::function<void(httplib::Request&)>& edit) {
    bool ends = false;
    const auto process = [&](auto& server) {  // releases differ in what they ask of their callers
      if constexpr (requires { server.process_request(connection, false, ends, edit); }) {
        return server.process_request(connection, false, ends, edit);
      } else {
        std::string remote, local;
        int remote_port = -1, local_port = -1;
        connection.get_remote_ip_and_port(remote, remote_port);
        connection.get_local_ip_and_port(local, local_port);
        return server.process_request(connection, remote, remote_port, local, local_port, false,
                                      ends, edit);
      }
    };
    return process(*this) && !ends;
  }

 private:
  bool process_and_close_socket(int socket) override {
    serve_connection(socket);
    return true;
  }
};

/// The connection that a thread serves.
thread_local const Connection* served_connection = nullptr;
/// What is wrong with the head of its request; null if nothing.
thread_local const char* head_fault = nullptr;
/// Set by a handler, read when its reply has been written by the same thread.
thread_local bool closes_connection = false;

/// Has this thread serve a connection, whose next request is being read.
class Serving {
 public:
  Serving(const Connection& own, ReadingConnections& reading) : own_(own), reading_(reading) {
    served_connection = &own;
    reading.add(own);
  }
  ~Serving() {
    reading_.remove(own_);
    served_connection = nullptr;
  }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

 private:
  const Connection& own_;
  ReadingConnections& reading_;
};

/// What can be given back in a header, and fits into a line of the log.
bool is_request_id(const std::string& text) {
  return text.size() <= 128 &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7F; });
}

/// JSON of many numbers is not worth compressing: cpp-httplib would, for this exact type alone.
std::string content_type(const std::string& type) {
  return type == "application/json" ? "application/json; charset=utf-8" : type;
}

}  // namespace

struct Server::Impl {
  Service& service;
  ServerOptions options;
  std::function<void(const AccessLogEntry&)> log;
  Semaphore stopping, thread_wanted;
  ConnectionPool pool;
  ReadingConnections reading;
  HttpServer http;
  int port = -1;
  std::atomic<bool> started = false, stopped = false, ended = false;

  Impl(Service& served, ServerOptions chosen, std::function<void(const AccessLogEntry&)> logger)
      : service(served),
        options(std::move(chosen)),
        log(std::move(logger)),
        pool(options.threads, options.waiting_connections, [this] { thread_wanted.set(); }) {
    http.new_task_queue = [this] { return new PoolAdapter(pool, reading); };
    http.serve_connection = [this](int socket) { serve_connection(socket); };
    http.set_post_routing_handler([this](const httplib::Request&, httplib::Response& response) {
      response.set_header("Date",
                          fmt::format("{:%a, %d %b %Y %T GMT}", fmt::gmtime(std::time({}))));
      // The library would name its own limits, which do not apply.
      if (response.headers.erase("Keep-Alive") > 0 && !closes_connection)
        response.set_header("Keep-Alive", fmt::format("timeout={}", options.keep_alive_seconds));
    });
    http.set_read_timeout(options.io_seconds);
    http.set_write_timeout(options.io_seconds);
    // What is larger is read by read_and_answer(), which bounds the time that it takes.
    http.set_payload_max_length(kMaxDiscarded * options.payload_limit);
    http.set_tcp_nodelay(true);
    http.set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          if (!head_fault) return httplib::Server::HandlerResponse::Unhandled;
          closes_connection = true;  // nobody knows where the request ends
          refuse(request, response, Stopwatch(), 400, head_fault);
          return httplib::Server::HandlerResponse::Handled;
        });
    http.set_expect_100_continue_handler([](const httplib::Request&, httplib::Response& response) {
      if (!head_fault) return 100;
      return response.status = 400;  // on_error says why
    });
    const auto with_body = [this](const httplib::Request& request, httplib::Response& response,
                                  const httplib::ContentReader& reader) {
      read_and_answer(request, response, reader);
    };
    const auto without_body = [this](const httplib::Request& request, httplib::Response& response) {
      std::size_t length = 0;
      // The library would take a body for a request.
      const BodyFraming body = framing_of(request, length);
      closes_connection =
          body != BodyFraming::none && (body != BodyFraming::content_length || length > 0);
      answer(request, response, {});
    };
    const char* any = R"([\s\S]*)";  // a dot is not a newline, which a path may have
    http.Get(any, without_body).Options(any, without_body);
    http.Post(any, with_body).Put(any, with_body).Patch(any, with_body);
    http.Delete(any, with_body);
    // What the library refuses by itself: a damaged head, a body that is announced as too large.
    const httplib::Server::HandlerWithResponse on_error = [this](const httplib::Request& request,
                                                                 httplib::Response& response) {
      if (!response.body.empty()) return httplib::Server::HandlerResponse::Unhandled;
      closes_connection = true;  // what follows may be a body that nobody has read
      std::string& path = const_cast<httplib::Request&>(request).path;
      if (path.empty()) path = request.target.substr(0, request.target.find('?'));
      if (response.status == 400 && has_other_method(request)) {
        response.status = 405;
        response.set_header("Allow", "GET, HEAD, POST");
      }
      refuse(request, response, Stopwatch(), response.status, message_of(request, response.status));
      return httplib::Server::HandlerResponse::Handled;
    };
    http.set_error_handler(on_error);
  }

  void serve_connection(int socket) {
    Connection own(socket, std::chrono::seconds(options.io_seconds));
    const Serving serving(own, reading);
    const std::chrono::seconds first(std::min(options.keep_alive_seconds, kFirstRequestSeconds));
    bool goes_on = !stopped && own.wait(first, {-1, -1}) == Connection::WakeReason::client;
    while (goes_on) {
      closes_connection = false;
      head_fault = nullptr;
      own.keep_head();
      const auto edit = [&](httplib::Request& request) {
        head_fault = read_headers(own.take_head(), request);
        normalize(request);
      };
      goes_on = http.serve_request(own, edit) && !closes_connection;
      reading.add(own);  // it was removed if there was an answer
      goes_on = goes_on && wait_for_request(own);
    }
  }

  /// False for a connection that is idle for too long, when the server stops, and where another
  /// waits for a thread.
  bool wait_for_request(const Connection& own) {
    using std::chrono::steady_clock;
    const auto answered = steady_clock::now(), idle = answered + kNotYetIdle,
               end = answered + std::chrono::seconds(options.keep_alive_seconds);
    for (auto now = answered; now < end && !stopped; now = steady_clock::now()) {
      const bool is_idle = now >= idle;
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>((is_idle ? end : std::min(idle, end)) - now);
      const auto wake = own.wait(left, {stopping.get(), is_idle ? thread_wanted.get() : -1});
      if (wake == Connection::WakeReason::client) return true;
      if (is_idle && thread_wanted.take() && pool.is_full()) return false;
    }
    return false;
  }

  void read_and_answer(const httplib::Request& request, httplib::Response& response,
                       const httplib::ContentReader& reader) {
    const Stopwatch clock;
    const auto give_up = [&](int status, const std::string& message) {
      closes_connection = true;  // what is left of the body is not a request
      refuse(request, response, clock, status, message);
    };
    std::size_t content_length = 0;
    const BodyFraming kind = framing_of(request, content_length);
    if (kind == BodyFraming::none) {  // the library would wait
      // A proxy may have seen a length that the library skipped, as in a line without a carriage
      // return. Clients announce an empty body, too (RFC 9110, 8.6).
      closes_connection = true;
      return answer(request, response, {});
    }
    if (kind == BodyFraming::ambiguous)
      return give_up(400, "invalid or conflicting Content-Length and Transfer-Encoding");
    if (request.is_multipart_form_data()) return give_up(415, "the body must be JSON");
    if (!has_known_encoding(request))
      return give_up(415, "Content-Encoding is not gzip, deflate or br");
    if (content_length > kMaxDiscarded * options.payload_limit)
      return give_up(413, body_too_large());
    // The library takes a damaged chunk for the last one: what follows may be no request.
    if (kind == BodyFraming::chunked) closes_connection = true;
    const bool admitted = service.admits(request.get_header_value("Authorization"));
    std::string body;  // stays empty without the key
    std::size_t size = 0;
    bool late = false;
    const bool whole = reader([&](const char* data, std::size_t length) {
      size += length;
      if (admitted && size <= options.payload_limit) body.append(data, length);
      late = clock.seconds() > options.body_seconds;
      return !late && size <= kMaxDiscarded * options.payload_limit;
    });
    if (late) return give_up(408, "timed out reading the request body");
    if (size > options.payload_limit) return give_up(413, body_too_large());
    // The library has set the status: 413 for a length that was announced, 400 for what it cannot
    // unpack or read.
    if (!whole)
      return give_up(response.status >= 400 ? response.status : 400,
                     response.status == 413 ? body_too_large() : "the request body cannot be read");
    answer(request, response, std::move(body));
  }

  /// Of a reply that the library has begun.
  std::string message_of(const httplib::Request& request, int status) const {
    switch (status) {
      case 405:
        return "the method " + request.method + " is not supported";
      case 413:
        return body_too_large();
      case 414:
        return "the path is too long";
      case 416:
        return "the header Range is malformed";
      default:
        if (head_fault) return head_fault;
        return status < 500 ? "the request is malformed" : "internal error";
    }
  }

  std::string body_too_large() const {
    return fmt::format("the request body exceeds {} bytes (--payload-limit)",
                       options.payload_limit);
  }

  void refuse(const httplib::Request& request, httplib::Response& response, const Stopwatch& clock,
              int status, const std::string& message) {
    RequestRecord record;
    record.route = service.route_of(request.path);
    record.error = message;
    reply(request, response, clock,
          {status,
           error_body(request.path, status, status < 500 ? "Validation" : "Backend", message)},
          std::move(record));
  }

  void answer(const httplib::Request& request, httplib::Response& response, std::string body) {
    const Stopwatch clock;
    reading.remove(*served_connection);
    HttpRequest call{request.method, request.path, std::move(body)};
    call.header = [&](const std::string& name) { return request.get_header_value(name); };
    call.is_disconnected = [] { return served_connection->is_disconnected(); };
    RequestRecord record;
    HttpResponse made = service.handle(call, record);
    reply(request, response, clock, std::move(made), std::move(record));
  }

  void reply(const httplib::Request& request, httplib::Response& response, const Stopwatch& clock,
             HttpResponse made, RequestRecord record) {
    // Connection::write() sends nothing once the client has ended its sending half.
    const bool gone = made.status == kClientClosedRequest || served_connection->is_disconnected();
    const int counted = gone ? kClientClosedRequest : made.status;
    if (gone) closes_connection = true;
    if (gone && record.error.empty()) record.error = "the client closed the connection";
    response.status = made.status == kClientClosedRequest ? 503 : made.status;
    for (const auto& [name, value] : made.headers) response.set_header(name, value);
    response.set_content(std::move(made.body), content_type(made.type));
    // Others wait for a thread, or the server ends: an idle connection would hold it.
    if (pool.is_full() || stopped || service.state() == Service::State::draining ||
        asks_to_close(request))
      closes_connection = true;
    if (closes_connection && request.get_header_value("Connection") != "close")
      response.set_header("Connection", "close");  // else the library does
    if (request.method == "HEAD") response.set_header("Accept-Ranges", "none");
    std::string id = request.get_header_value("X-Request-Id");
    if (!is_request_id(id)) id.clear();
    if (!id.empty()) response.set_header("X-Request-Id", id);
    const double seconds = clock.seconds();
    service.metrics().count_request(request.method, record, counted, seconds);
    if (log)
      log({request.method, request.path, request.remote_addr, counted, seconds, std::move(record),
           std::move(id)});
  }
};

Server::Server(Service& service, ServerOptions options,
               std::function<void(const AccessLogEntry&)> log)
    : impl_(std::make_unique<Impl>(service, std::move(options), std::move(log))) {}

Server::~Server() { stop(); }

int Server::bind() {
  const ServerOptions& options = impl_->options;
  // The library's default, SO_REUSEPORT, would let two servers share a port without a word.
  impl_->http.set_socket_options([](socket_t socket) {
    const int on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  });
  const int port = options.port == 0 ? impl_->http.bind_to_any_port(options.host)
                   : impl_->http.bind_to_port(options.host, options.port) ? options.port
                                                                          : -1;
  if (port < 0)
    throw Error(fmt::format("cannot listen on {}:{}: the port is taken, or the host is not one of "
                            "this machine; choose others by --host and --port",
                            options.host, options.port),
                ErrorCode::io);
  impl_->http.lengthen_backlog();
  return impl_->port = port;
}

void Server::listen() {
  impl_->started = true;
  if (!impl_->stopped) impl_->http.listen_after_bind();
  impl_->ended = true;
}

void Server::stop() {
  if (impl_->stopped.exchange(true)) return;
  impl_->stopping.set();
  impl_->pool.stop_waiting();
  // The library forgets a stop() that comes before it listens.
  while (impl_->started && !impl_->ended) {
    if (impl_->http.is_running()) return impl_->http.stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace bertcl::serve
