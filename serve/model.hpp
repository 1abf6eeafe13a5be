// SPDX-License-Identifier: Apache-2.0
// A model that is served: its session, its tokenizer, and the queue in front of it.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/session.hpp"
#include "serve/batch_health.hpp"
#include "serve/batcher.hpp"
#include "squad/answer.hpp"
#include "text/decoder.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::serve {

/// What a model does for a text, by its head.
enum class Kind { embedding, classifier, reranker, question_answering, other };
const char* name_of(Kind kind);

/// Outputs that are taken of each sequence: side by side in its Values.
struct Head {
  std::vector<std::string> outputs = {};
  bool by_token = false;  ///< [tokens, ..] of the sequence; else its row
};

/// All that is known of a model once it is loaded.
struct ModelSetup {
  std::string name;  ///< by which requests choose it
  std::string path;
  std::shared_ptr<runtime::Session> session;
  std::shared_ptr<const text::Tokenizer> tokenizer;
  Kind kind = Kind::other;
  Head head = {};
  std::size_t max_length = 512;   ///< tokens of a sequence
  std::int64_t vocabulary = 0;    ///< ids are below it
  std::int64_t fixed_batch = 0;   ///< that the file asks for; 0: any
  std::string dtype = "float32";  ///< for /info
  // Embeddings, and prompts of cross-encoders
  std::string pooling = {};
  bool normalized = false;
  bool pools_prompt = true;
  bool lower_case = false;  ///< texts, whatever the tokenizer does
  std::map<std::string, std::string> prompts = {};
  std::string default_prompt = {};
  /// The same model with its hidden states, loaded when they are first asked for.
  std::function<std::shared_ptr<runtime::Session>()> load_hidden_states = {};
  std::chrono::milliseconds reload_interval{60'000};  ///< after a load of them that failed
  // Classes
  std::vector<std::string> labels = {};
  std::string label_of(std::size_t index) const;  ///< as transformers calls those without a name
  bool multi_label = false;
  bool is_regression = false;  ///< /predict gives numbers, not probabilities
  bool sigmoid = true;         ///< a reranker's scores are sigmoids of its logits
  // Answers
  squad::AnswerOptions answer = {};
};

/// Values of a head for each sequence, by one run of a session.
RunFn make_run_fn(std::shared_ptr<runtime::Session> session, Head head);

class Model {
 public:
  /// How long a health check waits: orchestrators' probes time out after 5 s.
  static constexpr std::chrono::seconds kHealthCheckTimeout{2};

  Model(ModelSetup setup, BatcherOptions options);

  const ModelSetup& setup() const { return setup_; }
  Batcher& batcher() { return *batcher_; }
  /// What makes texts of token ids.
  const text::Decoder& decoder() const { return decoder_; }
  /// The batcher whose results are [tokens, hidden]. Throws HttpError 424 if the model has none, or
  /// cannot be loaded.
  Batcher& hidden_states();
  /// The depth of both queues.
  Batcher::Depth depth() const;
  /// Refuses new requests, and waits for those that are queued.
  void drain();
  /// Runs two sequences, so that kernels are built before the first request.
  void warm_up();
  /// If several batches failed, starts a probe batch unless one is in flight. Models whose head
  /// is not known have none.
  void start_health_check();
  /// How long each batch has failed, where several did and a probe batch has not run by `until`;
  /// or how long a batch has run, where that is more than `longest`: the device hangs.
  std::optional<BatchHealth::Clock::duration> failing(
      std::chrono::milliseconds longest,
      BatchHealth::Clock::time_point until = BatchHealth::Clock::now() + kHealthCheckTimeout);
  /// The same by the batches that have run, without a probe.
  bool is_suspicious() const { return health_.failing_since().has_value(); }

 private:
  /// Two sequences.
  Batcher::Ticket submit_health_check();

  const ModelSetup setup_;
  const text::Decoder decoder_;
  BatchHealth health_;
  const BatcherOptions options_;
  std::unique_ptr<Batcher> batcher_;
  std::mutex mutex_;
  std::unique_ptr<Batcher> hidden_states_;
  std::string load_error_;  // of their last load
  std::chrono::steady_clock::time_point next_load_{};
  std::atomic<const Batcher*> loaded_ = nullptr;  // it, for those who do not wait for its load
  std::mutex probe_mutex_;
  std::shared_ptr<const Batcher::Ticket> health_check_;  // shared by all who ask for health
};

/// A float output [batch, seq, hidden] that names its role, else the only one of that shape; "" if
/// there is none.
std::string hidden_output(const runtime::Session& session);

}  // namespace bertcl::serve
