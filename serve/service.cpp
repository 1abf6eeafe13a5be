// SPDX-License-Identifier: Apache-2.0
// Routing, authentication, waiting for results, and from exceptions to replies.
#include "serve/service.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>
#include <utility>

#include "bertcl/error.hpp"
#include "serve/http/api_key.hpp"
#include "serve/inputs.hpp"
#include "serve/json_text.hpp"
#include "serve/metrics.hpp"
#include "support/did_you_mean.hpp"
#include "tasks/features.hpp"

namespace bertcl::serve {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{100};  // at the connection of a waiting request
constexpr int kDeepestBody = 32;                         // lists and objects of a body

/// The parts of a path that stand for {}; none if it does not match. The first one is a model's
/// name, which may have slashes, and as long as can be.
std::optional<std::vector<std::string>> match(std::string_view pattern, std::string_view path,
                                              bool is_name = true) {
  const std::size_t fixed = std::min(pattern.find("{}"), pattern.size());
  if (path.substr(0, fixed) != pattern.substr(0, fixed)) return std::nullopt;
  pattern.remove_prefix(fixed);
  path.remove_prefix(fixed);
  if (pattern.empty())
    return path.empty() ? std::optional(std::vector<std::string>{}) : std::nullopt;
  pattern.remove_prefix(2);
  const std::size_t max = is_name ? path.size() : std::min(path.find('/'), path.size());
  for (std::size_t length = max; length > 0; --length) {
    auto others = match(pattern, path.substr(length), false);
    if (!others) continue;
    others->insert(others->begin(), std::string(path.substr(0, length)));
    return others;
  }
  return std::nullopt;
}

int limit_of(const Model& model) { return static_cast<int>(model.setup().max_length); }

/// Throws HttpError 413 if it was cut, and may not be.
Sequence checked(const text::EncodedInput& text, const Model& model, const Truncation& truncation) {
  if (text.cut > 0 && !truncation.truncate)
    throw HttpError(413, "Validation",
                    fmt::format("a text has {} tokens, the model takes {}; shorten it, or send "
                                "\"truncate\": true",
                                text.ids.size() + text.cut, limit_of(model)));
  return {text.ids, text.second};
}

/// True if lists and objects of a JSON text are nested more than `max` deep. Each takes memory
/// of many times its two bytes.
bool is_nested_deeper(std::string_view text, int max) {
  bool in_string = false;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') ++i;
    if (c == '"') in_string = !in_string;
    if (in_string) continue;
    if ((c == '[' || c == '{') && ++depth > max) return true;
    if (c == ']' || c == '}') --depth;
  }
  return false;
}

/// Waits until `ready`, called with the time that it may take, gives true or a value. Throws
/// ClientDisconnected, or HttpError 504 at the request's end.
template <class Ready>
auto wait_for(const Context& context, const Ready& ready) {
  for (;;) {
    if (auto found = ready(kBetweenLooks)) return found;
    if (context.call.is_disconnected()) throw ClientDisconnected();
    context.check_time();
  }
}

bool is_openai(std::string_view path) { return path.starts_with("/v1/") || path == "/embeddings"; }

/// Where 424 is what clients expect of a device that failed. Those of other protocols take it for
/// a fault of theirs.
bool has_tei_statuses(std::string_view path) {
  return !is_openai(path) && !path.starts_with("/v2");
}

/// Why no request is answered in a state; "" if they are.
std::string reason_of(Service::State state) {
  return state == Service::State::loading    ? "models are being loaded"
         : state == Service::State::draining ? "the server is shutting down"
                                             : "";
}

}  // namespace

nlohmann::json parse_body(std::string_view text, int status) {
  const auto refuse = [&](const std::string& why) -> HttpError {
    return {status, "Validation", "the body " + why};
  };
  if (is_nested_deeper(text, kDeepestBody)) throw refuse("is nested too deeply");
  nlohmann::json document;
  try {
    document = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw refuse(fmt::format("is not valid JSON (byte {} of {})", std::min(error.byte, text.size()),
                             text.size()));
  } catch (const nlohmann::json::out_of_range&) {
    throw refuse("is not valid JSON: a number is out of range");
  }
  if (!document.is_object()) throw refuse("must be a JSON object");
  return document;
}

HttpError backend_error(const std::exception& error) {
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  return {424, "Backend", no_memory ? "out of memory" : error.what()};
}

text::JsonNode Context::body() {
  document = parse_body(call.body, 422);
  return text::JsonNode(document);
}

void Context::release_body() {
  document = nullptr;
  share.reset();
}

void Context::check_time() const {
  const std::chrono::milliseconds timeout = service.options().timeout;
  if (std::chrono::steady_clock::now() >= begin + timeout)
    throw HttpError(504, "Backend",
                    fmt::format("timed out after {} s (--timeout)", timeout.count() / 1000));
}

void Context::wait(Batcher::Ticket& ticket) {
  release_body();
  wait_for(*this, [&](std::chrono::milliseconds time) { return ticket.wait_for(time); });
}

std::vector<Values> Context::run(Model& model, Batcher& batcher, std::vector<Sequence> sequences) {
  for (const Sequence& sequence : sequences) {
    record.tokens += sequence.ids.size();
    for (const std::int64_t id : sequence.ids)
      if (id < 0 || (model.setup().vocabulary > 0 && id >= model.setup().vocabulary))
        throw HttpError(422, "Validation",
                        fmt::format("token id {} is outside the vocabulary of {} tokens", id,
                                    model.setup().vocabulary));
    if (sequence.ids.empty()) throw HttpError(422, "Validation", "a text has no tokens");
  }
  if (record.tokens > batcher.options().max_queue_tokens)
    throw HttpError(413, "Validation",
                    fmt::format("the request has {} tokens, the limit is {} (--max-queue-tokens)",
                                record.tokens, batcher.options().max_queue_tokens));
  Batcher::Ticket ticket = batcher.submit(std::move(sequences));
  wait(ticket);
  try {
    return ticket.get();
  } catch (const std::exception& error) {
    throw backend_error(error);
  }
}

Sequence Context::encode(const Model& model, std::string_view text,
                         const Truncation& truncation) const {
  check_time();
  const text::Tokenizer& tokenizer = *model.setup().tokenizer;
  return checked(tasks::encode_pieces(tokenizer.encode(text), tokenizer, limit_of(model),
                                      truncation.cuts_left),
                 model, truncation);
}

Sequence Context::encode(const Model& model, std::string_view first, std::string_view second,
                         const Truncation& truncation) const {
  return encode(model, model.setup().tokenizer->encode(first), second, truncation);
}

Sequence Context::encode(const Model& model, text::Tokens first, std::string_view second,
                         const Truncation& truncation) const {
  check_time();
  const text::Tokenizer& tokenizer = *model.setup().tokenizer;
  const std::vector<std::int32_t> all = tokenizer.encode(second);
  const std::size_t max = std::min(all.size(), truncation.max_second_tokens.value_or(all.size()));
  const bool left = truncation.cuts_left.value_or(tokenizer.truncates_left());
  const auto kept = left ? text::Tokens(all).last(max) : text::Tokens(all).first(max);
  return checked(tasks::encode_pair(first, kept, tokenizer, limit_of(model), left), model,
                 truncation);
}

Truncation Context::truncation(const text::JsonNode& body) const {
  Truncation truncation{service.options().auto_truncate};
  if (const auto truncate = body.find("truncate")) truncation.truncate = truncate->boolean();
  if (const auto side = body.find("truncation_direction")) {
    const bool left = side->string() == "Left" || side->string() == "left";
    truncation.cuts_left = left;
    if (!left && side->string() != "Right" && side->string() != "right")
      side->fail(fmt::format("is \"{}\" (choose from Left, Right)", side->string()));
  }
  return truncation;
}

void Context::check_text_count(std::size_t texts) const {
  if (texts == 0) throw HttpError(400, "Empty", "the request has no text");
  const std::size_t max = service.options().max_client_batch;
  if (texts > max)
    throw HttpError(
        413, "Validation",
        fmt::format("the request has {} texts, the limit is {} (--max-client-batch)", texts, max));
}

Service::Service(ServiceOptions options, Metrics& metrics)
    : options_(std::move(options)), budget_(options_.body_budget), metrics_(metrics) {
  for (const auto& routes : {tei_routes(), openai_routes(), oip_routes(), answer_routes(),
                             rerank_routes(), page_routes()})
    routes_.insert(routes_.end(), routes.begin(), routes.end());
}

Service::~Service() { drain(); }

void Service::start(std::vector<std::unique_ptr<Model>> models) {
  models_ = std::move(models);
  for (const auto& model : models_) metrics_.add_model(model->setup().name);
  state_ = State::ready;
}

void Service::drain() {
  state_ = State::draining;
  for (const auto& model : models_) model->drain();
}

std::string Service::unavailable() const {
  if (const std::string why = reason_of(state_); !why.empty()) return why;
  for (const auto& [name, time] : failing())
    return fmt::format("all batches of the model '{}' have failed for {} s", name,
                       std::chrono::duration_cast<std::chrono::seconds>(time).count());
  return "";
}

std::vector<std::pair<std::string, std::chrono::nanoseconds>> Service::failing() const {
  for (const auto& model : models_) model->start_health_check();
  const auto until = std::chrono::steady_clock::now() + Model::kHealthCheckTimeout;
  std::vector<std::pair<std::string, std::chrono::nanoseconds>> found;
  for (const auto& model : models_)
    if (const auto time = model->failing(options_.timeout, until))
      found.emplace_back(model->setup().name, *time);
  return found;
}

bool Service::is_suspicious(std::string_view name) const {
  return std::ranges::any_of(models_, [&](const auto& model) {
    return model->setup().name == name && model->is_suspicious();
  });
}

bool Service::is_live() const {
  if (state_ != State::ready) return true;
  return std::ranges::none_of(failing(),
                              [&](const auto& one) { return one.second >= options_.failing; });
}

Model& Service::model(std::string_view name) const {
  std::vector<std::string> names;
  for (const auto& model : models_) {
    if (model->setup().name == name) return *model;
    names.push_back(model->setup().name);
  }
  throw HttpError(404, "Validation",
                  fmt::format("unknown model '{}'{}", name, suggestion(name, names)));
}

Model& Service::model_for(Context& context, std::initializer_list<Kind> kinds,
                          const text::JsonNode& body) const {
  const auto named = body.find("model");
  const std::string wanted = named ? named->string() : "";
  const auto fits = [&](const Model& model) {
    return std::ranges::find(kinds, model.setup().kind) != kinds.end();
  };
  Model* chosen = nullptr;
  if (!wanted.empty()) chosen = &model(wanted);
  for (const auto& model : models_)
    if (!chosen && fits(*model)) chosen = model.get();
  std::vector<std::string> names;
  for (const Kind kind : kinds) names.emplace_back(name_of(kind));
  const int status = has_tei_statuses(context.call.path) ? 424 : 400;
  const char* type = status == 424 ? "Backend" : "Validation";
  if (!chosen)
    throw HttpError(
        status, type,
        fmt::format("no {} model is served; this route needs one", fmt::join(names, " or ")));
  context.record.model = chosen->setup().name;
  if (!fits(*chosen))
    throw HttpError(status, type,
                    fmt::format("model '{}' has kind {}; this route needs {}", wanted,
                                name_of(chosen->setup().kind), fmt::join(names, " or ")));
  return *chosen;
}

std::string Service::route_of(std::string_view path) const {
  for (const Route& route : routes_)
    if (match(route.path, path)) return route.path;
  return RequestRecord{}.route;
}

bool Service::admits(const std::string& authorization) const {
  return options_.api_key.empty() || has_key(authorization, options_.api_key);
}

HttpResponse Service::dispatch(const HttpRequest& call, RequestRecord& record) {
  const Route* found = nullptr;
  std::vector<std::string> methods, arguments;
  for (const Route& route : routes_) {
    auto matched = match(route.path, call.path);
    // Of a name with slashes other patterns could match, too: the first one holds.
    if (!matched || (!methods.empty() && route.path != record.route)) continue;
    record.route = route.path;
    methods.push_back(route.method);
    if (route.method != call.method && !(route.method == "GET" && call.method == "HEAD")) continue;
    found = &route;
    arguments = std::move(*matched);
    break;
  }
  if ((!found || !found->is_public) && !admits(call.header("Authorization")))
    throw HttpError(401, "Validation", "missing or invalid API key; send Authorization: Bearer KEY",
                    {{"WWW-Authenticate", "Bearer"}});
  if (!found && methods.empty()) throw HttpError(404, "Validation", "unknown path " + call.path);
  if (!found) {
    if (std::ranges::count(methods, "GET") > 0) methods.emplace_back("HEAD");
    const std::string allowed = fmt::format("{}", fmt::join(methods, ", "));
    throw HttpError(
        405, "Validation",
        fmt::format("{} is not allowed for {} (allowed: {})", call.method, call.path, allowed),
        {{"Allow", allowed}});
  }
  if (const std::string why = reason_of(state_); !why.empty() && !found->when_down)
    throw HttpError(503, "Unhealthy", why);
  Context context{*this, call, record, std::move(arguments)};
  auto share = wait_for(context, [&](std::chrono::milliseconds time) {
    return budget_.take(call.body.size(), time);
  });
  context.share.emplace(std::move(*share));
  return found->handler(context);
}

HttpResponse Service::handle(const HttpRequest& call, RequestRecord& record) noexcept {
  const auto failed = [&](int status, const std::string& type, const std::string& message) {
    if (status == 424 && !has_tei_statuses(call.path))
      status = is_suspicious(record.model) ? 503 : 500;
    HttpResponse response{status, error_body(call.path, status, type, message)};
    record.error = message;
    if (status == 429 || status == 503) response.headers.emplace_back("Retry-After", "1");
    return response;
  };
  try {
    return dispatch(call, record);
  } catch (const HttpError& error) {
    HttpResponse response = failed(error.status, error.type, error.message);
    response.headers.insert(response.headers.end(), error.headers.begin(), error.headers.end());
    return response;
  } catch (const QueueFull& error) {
    return failed(429, "Overloaded", error.what());
  } catch (const Draining& error) {
    return failed(503, "Unhealthy", error.what());
  } catch (const ClientDisconnected& error) {
    return failed(kClientClosedRequest, "Backend", error.what());
  } catch (const Error& error) {
    if (is_of_request(error)) return failed(422, "Validation", error.what());
    return failed(424, "Backend", error.what());
  } catch (const std::bad_alloc&) {
    return failed(500, "Backend", "out of memory");
  } catch (const std::exception& error) {
    return failed(500, "Backend", error.what());
  }
}

std::string error_body(std::string_view path, int status, const std::string& type,
                       const std::string& message) {
  if (is_openai(path)) {
    const char* kind = status == 401   ? "authentication_error"
                       : status == 429 ? "rate_limit_error"
                       : status >= 500 ? "server_error"
                                       : "invalid_request_error";
    nlohmann::json code = nullptr;
    if (status == 401) code = "invalid_api_key";
    if (status == 429) code = "rate_limit_exceeded";
    return dump(
        {{"error", {{"message", message}, {"type", kind}, {"param", nullptr}, {"code", code}}}});
  }
  if (path == "/v2/rerank") return dump({{"error", message}, {"message", message}});  // as Cohere
  if (path.starts_with("/v2")) return dump({{"error", message}});
  return dump({{"error", message}, {"error_type", type}});
}

}  // namespace bertcl::serve
