// SPDX-License-Identifier: Apache-2.0
// bertcl serve: serves models over HTTP until a signal ends it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <latch>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "opencl/context_future.hpp"
#include "plan/report.hpp"
#include "serve/http/api_key.hpp"
#include "serve/metrics.hpp"
#include "serve/request_log.hpp"
#include "serve/server.hpp"
#include "support/fail.hpp"
#include "support/option_checks.hpp"
#include "tools/models/default_model.hpp"
#include "tools/models/served_model.hpp"
#include "tools/options/config_file.hpp"
#include "tools/options/file_options.hpp"
#include "tools/options/json_report.hpp"
#include "tools/options/text_option.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

struct ServeOptions : ServedModelOptions {
  std::vector<std::string> models;
  serve::ServerOptions server;
  serve::ServiceOptions service;
  serve::BatcherOptions batcher;
  std::optional<std::size_t> max_batch_tokens;
  int max_wait_ms = 0, timeout = 60;
  std::string config, log_level = "all";
  bool json_logs = false;
};

/// Waits for SIGINT, SIGTERM and SIGHUP, which no other thread gets; the second one ends the
/// program.
class SignalWatch {
 public:
  explicit SignalWatch(std::function<void()> on_signal) : on_signal_(std::move(on_signal)) {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    struct sigaction hang_up {};
    sigaction(SIGHUP, nullptr, &hang_up);
    if (hang_up.sa_handler != SIG_IGN) sigaddset(&signals_, SIGHUP);  // nohup wants it ignored
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);  // threads that start later inherit it
    thread_ = std::thread([this] { watch(); });
  }
  ~SignalWatch() {
    ended_ = true;
    thread_.join();
    pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
  }

 private:
  void watch() {
    const timespec some = {0, 100'000'000};
    for (bool first = true; !ended_;) {
      const int signal = sigtimedwait(&signals_, nullptr, &some);
      if (signal < 0) continue;
      if (!first) std::_Exit(128 + signal);
      first = false;
      on_signal_();
    }
  }

  sigset_t signals_{};
  std::function<void()> on_signal_;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

/// Ends the server and waits for its thread, however the scope is left.
class Listener {
 public:
  explicit Listener(serve::Server& server)
      : server_(server), thread_([&server] { server.listen(); }) {}
  ~Listener() {
    server_.stop();
    thread_.join();
  }

 private:
  serve::Server& server_;
  std::thread thread_;
};

/// Each connection is a descriptor; many systems let a process have 1024 unless it asks for more,
/// and a driver that opens a file needs one, too.
void allow_descriptors(const serve::ServerOptions& server) {
  constexpr rlim_t others = 1024;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = server.threads + server.waiting_connections + others;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(wanted, limit.rlim_max));
  setrlimit(RLIMIT_NOFILE, &limit);  // a refusal leaves the limit as it was
}

std::vector<NamedModel> named_models(const ServeOptions& options) {
  if (options.models.empty()) {
    const std::string found = find_default_model().string();
    const char* named = std::getenv("BERTCL_MODEL");
    return {parse_named_model(named && *named ? named : found)};
  }
  std::vector<NamedModel> models;
  for (const std::string& text : options.models) {
    models.push_back(parse_named_model(text));
    for (std::size_t i = 0; i + 1 < models.size(); ++i)
      if (models[i].name == models.back().name)
        fail("two models are called '{}'; name them: NAME=PATH", models.back().name);
  }
  return models;
}

/// A batch keeps a GPU busy by its size, a core by 512 tokens; what comes while it runs waits for
/// all of it. all-MiniLM-L6-v2 in int8 on two cores of an AMD EPYC with AVX-512 VNNI, 2026-11-26,
/// 64 connections: 927 texts/s and a p99 of 102 ms with 1024 tokens, 916 and 122 with 16384.
std::size_t batch_tokens(const opencl::DeviceInfo& device) {
  const std::size_t max = serve::BatcherOptions{}.max_batch_tokens, of_core = 512;
  return device.is_cpu() ? std::min(max, of_core * device.compute_units) : max;
}

/// A prompt belongs to one model: before texts of another it changes vectors without a word.
void check_shared_prompt(const std::vector<std::unique_ptr<serve::Model>>& models,
                         const std::string& prompt) {
  std::vector<std::string> names;
  for (const auto& model : models)
    if (model->setup().kind == serve::Kind::embedding) names.push_back(model->setup().name);
  if (names.size() > 1)
    throw Error(fmt::format(
        "--prompt \"{}\" applies to one embedding model, but several are served ({}); start a "
        "server for each, or name prompts in requests (prompt_name)",
        prompt, fmt::join(names, ", ")));
}

/// Refuses options of vectors where no model makes any.
void check_vector_options(const std::vector<std::unique_ptr<serve::Model>>& models,
                          const ServeOptions& options) {
  const auto makes_vectors = [](const auto& model) {
    return model->setup().kind == serve::Kind::embedding;
  };
  if (std::ranges::any_of(models, makes_vectors)) return;
  const PoolingOptions& pooled = options.pooled;
  const char* given = options.prompt      ? "--prompt"
                      : pooled.dimensions ? "--dimensions"
                      : pooled.normalize  ? *pooled.normalize ? "--normalize" : "--no-normalize"
                      : !pooled.pooling.empty() ? "--pooling"
                                                : nullptr;
  if (given) fail("{} has no effect: no embedding model is served", given);
}

std::vector<std::unique_ptr<serve::Model>> load_models(const std::vector<NamedModel>& named,
                                                       const ServeOptions& options,
                                                       serve::Metrics& metrics) {
  ServedModelOptions own = options;
  own.beside_others = named.size() > 1;
  own.executors = options.batcher.executors;
  const auto device = opencl::ContextFuture::open(options.device);
  std::vector<std::unique_ptr<serve::Model>> models;
  for (const NamedModel& model : named) {
    serve::ModelSetup setup = load_served_model(model, own, device);
    if (!meets_requirement(*setup.session, options)) return {};
    serve::BatcherOptions batcher = options.batcher;
    batcher.max_batch_tokens =
        options.max_batch_tokens.value_or(batch_tokens(setup.session->context().info()));
    batcher.max_wait = std::chrono::milliseconds(options.max_wait_ms);
    batcher.on_batch = [&metrics, name = setup.name](const serve::BatchDone& done) {
      metrics.count_batch(name, done);
    };
    models.push_back(std::make_unique<serve::Model>(std::move(setup), std::move(batcher)));
    models.back()->warm_up();
  }
  check_vector_options(models, options);
  if (!options.prompt.value_or("").empty()) check_shared_prompt(models, *options.prompt);
  return models;
}

/// What is known once requests are answered.
void report(const ServeOptions& options, int port, const serve::Service& service,
            serve::RequestLog& log) {
  const auto tell = [&](const std::string& line) {
    if (options.json_logs)
      log.message("info", line);
    else if (options.prints_text())
      print_text("{}\n", line);
  };
  nlohmann::ordered_json models = nlohmann::ordered_json::array();
  for (const auto& model : service.models()) {
    const serve::ModelSetup& setup = model->setup();
    models.push_back({{"name", setup.name},
                      {"path", setup.path},
                      {"kind", serve::name_of(setup.kind)},
                      {"max_length", setup.max_length},
                      {"precision", plan::precision_of(setup.session->plan()).str()}});
    const bool other = setup.kind == serve::Kind::other;
    tell(fmt::format(
        "{}: {}, up to {} tokens{}", setup.name, serve::name_of(setup.kind), setup.max_length,
        other
            ? " (routes /v2 and, for hidden states, /embed_all; --pooling enables text embeddings)"
            : ""));
    if (model->batcher().options().one_request)
      tell(
          fmt::format("{}: its scales cover the whole batch (dynamic quantization), so requests "
                      "run one after another; quantize with calibration, or --dynamic --per-token",
                      setup.name));
  }
  const std::string host = options.server.host;
  const std::string url =
      fmt::format("http://{}:{}", host.find(':') == host.npos ? host : "[" + host + "]", port);
  tell(url + " is ready");
  finish_output();
  write_report(options, service.models().front()->setup().session->context().info(),
               {{"url", url}, {"host", host}, {"port", port}, {"models", models}});
}

/// Whoever sets the variable wants a key: an empty one must not let everyone in.
void set_key(serve::ServiceOptions& service) {
  const char* key = std::getenv("BERTCL_API_KEY");
  if (!key || !service.api_key.empty()) return;
  if (const std::string fault = serve::key_error(key); !fault.empty())
    throw Error("BERTCL_API_KEY: " + fault + "; unset the variable to serve without a key");
  service.api_key = key;
}

int serve_models(ServeOptions options, serve::RequestLog& log) {
  set_key(options.service);
  const std::vector<NamedModel> named = named_models(options);
  options.service.timeout = std::chrono::seconds(options.timeout);
  options.service.threads = options.server.threads;
  options.service.body_budget =
      std::max(options.service.body_budget, 4 * options.server.payload_limit);
  options.service.max_concurrent_requests = options.batcher.max_queue_requests;
  allow_descriptors(options.server);
  serve::Metrics metrics;
  serve::Service service(options.service, metrics);
  std::latch ended(1);
  const SignalWatch signals([&] {
    // Nothing is queued yet, and what loads a model cannot be interrupted.
    if (service.state() == serve::Service::State::loading) {
      log.drain();
      std::_Exit(kOk);
    }
    ended.count_down();
  });
  serve::Server server(service, options.server,
                       [&log](const serve::AccessLogEntry& answered) { log.write(answered); });
  const int port = server.bind();
  const Listener listener(server);
  std::vector<std::unique_ptr<serve::Model>> models = load_models(named, options, metrics);
  if (models.empty()) return kCheckFailed;
  service.start(std::move(models));
  report(options, port, service, log);
  ended.wait();
  service.drain();
  return kOk;
}

void add_server_options(CLI::App& command, ServeOptions& options) {
  serve::ServerOptions& server = options.server;
  serve::ServiceOptions& service = options.service;
  command.add_option("--host", server.host, "Address to listen on; 0.0.0.0: all of this machine")
      ->capture_default_str()
      ->check(CLI::Validator(
          [](const std::string& host) {
            return host.empty() ? "the address is empty; 127.0.0.1 is this machine" : "";
          },
          ""))
      ->type_name("ADDRESS");
  in_range(command, "--port", server.port, 0, 65535, "Port; 0 picks a free one");
  command
      .add_option("--api-key", service.api_key,
                  "Answer only requests with the header Authorization: Bearer KEY; by default "
                  "BERTCL_API_KEY, which other users of the machine do not see")
      ->check(CLI::Validator([](const std::string& key) { return serve::key_error(key); }, ""))
      ->type_name("KEY");
  input_file(command.add_option(
      "--config", options.config,
      "Options from a file, by their long names: port = 8081; the command line takes precedence"));
  const OptionGroup group(command, "Server");
  in_range(command, "--threads", server.threads, 1, 65536, "Concurrent connections");
  in_range(command, "--payload-limit", server.payload_limit, 1, std::size_t{1} << 40,
           "Maximum bytes of a request body, after decompression");
  positive(command, "--timeout", options.timeout, "Request timeout in seconds");
  in_range(command, "--keep-alive", server.keep_alive_seconds, 1, 86400,
           "Seconds until an idle connection is closed; set it above the proxy's idle timeout");
  command.add_flag("--json-logs", options.json_logs,
                   "Requests and messages as JSON lines on standard error");
  one_of(command.add_option(
             "--log", options.log_level,
             "Requests to log; requests: all but successful health and metrics requests"),
         {"all", "requests", "errors", "none"});
}

void add_batch_options(CLI::App& command, ServeOptions& options) {
  serve::BatcherOptions& batcher = options.batcher;
  const OptionGroup group(command, "Batches");
  positive(command, "--max-batch-tokens", options.max_batch_tokens,
           "Maximum tokens of a batch; by default 16384, on a CPU at most 512 for each core");
  not_negative(command, "--max-wait-ms", options.max_wait_ms,
               "Maximum milliseconds a request waits to be batched with others; 0: run queued "
               "requests as soon as the device is free");
  positive(command, "--max-queue", batcher.max_queue_requests,
           "Maximum waiting requests; further ones get 429");
  positive(command, "--max-queue-tokens", batcher.max_queue_tokens,
           "Maximum tokens of all waiting requests");
  positive(command, "--max-client-batch", options.service.max_client_batch,
           "Maximum texts of a request");
  in_range(command, "--executors", batcher.executors, 1, 1024, "Concurrent batches of a model");
  command.add_flag("--auto-truncate", options.service.auto_truncate,
                   "Truncate texts that are too long instead of refusing them, unless the request "
                   "says otherwise");
}

}  // namespace

void add_serve(CLI::App& program, Action& action) {
  const auto options = std::make_shared<ServeOptions>();
  CLI::App* command = add_model_command(
      program, "serve",
      "Serve models over HTTP\n\n"
      "Requests of many clients run together in packed batches. The routes are those of OpenAI "
      "(/v1/embeddings), text-embeddings-inference (/embed, /rerank, /predict, ...) and the Open "
      "Inference Protocol (/v2/models/NAME/infer), and /answer for questions about a text; /health "
      "and /metrics report its state. On SIGTERM or SIGINT it answers what it has received, then "
      "exits.\n\n"
      "What a model does follows from its outputs and the files beside it, as for embed, rerank "
      "and answer. --json FILE writes the address once the server is ready.",
      "bertcl serve minilm=models/minilm-l6-squad/model.onnx --port 8080", *options);
  input_file(command->add_option("MODEL", options->models,
                                 "ONNX models, NAME=PATH or PATH; by default BERTCL_MODEL, else "
                                 "the bundled one"))
      ->type_name("");
  command->get_option("--allow-nonfinite")
      ->description(
          "Continue if weights or the logits of answers hold NaN or infinity, normally an error");
  add_server_options(*command, *options);
  add_batch_options(*command, *options);
  add_pooling_options(*command, options->pooled);
  text_option(
      command->add_option("--prompt", options->prompt,
                          "Text before each text that becomes a vector (\"query: \"), where a "
                          "request names none; by default the model's default prompt"));
  add_max_length_option(*command, options->max_length);
  add_vocabulary_options(*command, options->vocabulary);
  command->callback([options, command, &action] {
    action = [options, command] {
      if (!options->config.empty()) read_config_file(*command, options->config);
      serve::RequestLog log(options->json_logs, options->log_level);
      try {
        return serve_models(*options, log);
      } catch (const Error& error) {
        if (!options->json_logs) throw;
        log.message("error", error.what());
        return kBadUse;
      }
    };
  });
}

}  // namespace bertcl::tools
