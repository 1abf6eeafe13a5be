// SPDX-License-Identifier: Apache-2.0
// What the server does with a request, whatever brought it: choice of the route and the model,
// limits, errors.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/body_budget.hpp"
#include "serve/http/http.hpp"
#include "serve/model.hpp"
#include "text/base/json_node.hpp"
#include "text/truncation.hpp"

namespace bertcl::serve {

class Metrics;

struct ServiceOptions {
  std::size_t max_client_batch = 32;          ///< texts of a request
  bool auto_truncate = false;                 ///< where a request does not say
  std::chrono::milliseconds timeout{60'000};  ///< from a request's whole body to its result
  std::string api_key = {};                   ///< "" lets everyone in
  std::size_t max_concurrent_requests = 512;  ///< for /info
  std::size_t threads = 64;                   ///< likewise
  std::size_t body_budget = 8'000'000;        ///< bytes of bodies in work; others wait
  std::chrono::milliseconds failing{60'000};  ///< until a server whose batches fail is not live
};

/// How texts are cut that are too long; without `truncate` they are refused.
struct Truncation {
  bool truncate = false;
  std::optional<bool> cuts_left = {};                 ///< none: as the tokenizer does
  std::optional<std::size_t> max_second_tokens = {};  ///< kept of a pair's second text
};

/// What is told of a request in logs and metrics.
struct RequestRecord {
  std::string route = "none";  ///< "/v2/models/{name}/infer"
  std::string model = {};
  std::size_t texts = 0, tokens = 0;
  std::string error = {};
};

class Service;

/// A request on its way through a route.
struct Context {
  Service& service;
  const HttpRequest& call;
  RequestRecord& record;
  std::vector<std::string> arguments = {};      ///< of {} in the path
  std::optional<BodyBudget::Share> share = {};  ///< until it is queued
  nlohmann::json document = {};                 ///< of body(), as long
  /// When all waits of the request began, which take ServiceOptions::timeout together.
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

  /// The body. Throws HttpError 422 if it is not a JSON object.
  text::JsonNode body();
  /// Sequences run by the model; the values of each. Throws HttpError, ClientDisconnected. The body
  /// is gone then.
  std::vector<Values> run(Model& model, Batcher& batcher, std::vector<Sequence> sequences);
  /// Frees the parsed body and gives back its share of the budget, for what takes long.
  void release_body();
  /// Throws HttpError 504 at the request's end.
  void check_time() const;
  /// Releases the body first.
  void wait(Batcher::Ticket& ticket);
  /// A text or a pair with the limits of the model and the request. Throws HttpError 413, and 504
  /// at the request's end: a regular expression may take seconds for each of many texts.
  Sequence encode(const Model& model, std::string_view text, const Truncation& truncation) const;
  Sequence encode(const Model& model, std::string_view first, std::string_view second,
                  const Truncation& truncation) const;
  /// The same of a first text that is tokenized already.
  Sequence encode(const Model& model, text::Tokens first, std::string_view second,
                  const Truncation& truncation) const;
  /// What the body says by `truncate` and `truncation_direction`.
  Truncation truncation(const text::JsonNode& body) const;
  /// Throws HttpError: 400 for no text, 413 for more than a request may have.
  void check_text_count(std::size_t texts) const;
};

using Handler = HttpResponse (*)(Context&);

struct Route {
  std::string method, path;
  Handler handler;
  bool is_public = false;  ///< needs no key
  bool when_down = false;  ///< answers while models are loaded, and while the server drains
};

// Defined in serve/routes/, in the files of their protocols.
std::vector<Route> tei_routes();
std::vector<Route> openai_routes();
std::vector<Route> oip_routes();
std::vector<Route> answer_routes();
std::vector<Route> rerank_routes();
std::vector<Route> page_routes();

class Service {
 public:
  enum class State { loading, ready, draining };

  Service(ServiceOptions options, Metrics& metrics);
  ~Service();

  /// Models in the order in which they are preferred; from now on requests are answered.
  void start(std::vector<std::unique_ptr<Model>> models);
  /// Requests that come now get 503; returns when all others have their results.
  void drain();
  State state() const { return state_; }
  /// Why requests cannot be answered now; "" if they can. May run a probe batch of a model whose
  /// last batches failed.
  std::string unavailable() const;
  /// False where batches have failed for long: a new process may find the device again.
  bool is_live() const;

  /// The label of metrics: the route of a path, with {} for names; "none" if there is none.
  std::string route_of(std::string_view path) const;
  /// True if the key that the header Authorization shows is that of the server, or it has none.
  bool admits(const std::string& authorization) const;
  /// Never throws; `record` says what was done. A client that disconnected has status 499.
  HttpResponse handle(const HttpRequest& call, RequestRecord& record) noexcept;

  const ServiceOptions& options() const { return options_; }
  Metrics& metrics() { return metrics_; }
  BodyBudget& budget() { return budget_; }
  const std::vector<std::unique_ptr<Model>>& models() const { return models_; }
  /// The model of that name. Throws HttpError 404.
  Model& model(std::string_view name) const;
  /// The model that the body's `model` names, else the first of these kinds. Throws HttpError 424
  /// (400 in the protocols of OpenAI and others) if there is none, or if the named one is of
  /// another kind.
  Model& model_for(Context& context, std::initializer_list<Kind> kinds,
                   const text::JsonNode& body) const;

 private:
  HttpResponse dispatch(const HttpRequest& call, RequestRecord& record);
  /// Models whose batches fail or hang, and for how long.
  std::vector<std::pair<std::string, std::chrono::nanoseconds>> failing() const;
  /// True for a model whose last batches failed.
  bool is_suspicious(std::string_view name) const;

  const ServiceOptions options_;
  BodyBudget budget_;
  Metrics& metrics_;
  std::vector<Route> routes_;
  std::vector<std::unique_ptr<Model>> models_;
  std::atomic<State> state_ = State::loading;
};

/// A JSON object. Throws HttpError of that status if `text` is none, without quoting its content.
nlohmann::json parse_body(std::string_view text, int status);

/// What a batch threw, whatever ran in it.
HttpError backend_error(const std::exception& error);

/// The body of an error in the protocol of a path.
std::string error_body(std::string_view path, int status, const std::string& type,
                       const std::string& message);

}  // namespace bertcl::serve
