// SPDX-License-Identifier: Apache-2.0
// Runs of a batch, and the rows of its outputs.
#include "serve/model.hpp"

#include <algorithm>
#include <utility>

#include "bertcl/error.hpp"
#include "ir/port.hpp"
#include "runtime/row_values.hpp"
#include "runtime/sequences.hpp"
#include "serve/http/http.hpp"
#include "serve/service.hpp"
#include "text/batch.hpp"

namespace bertcl::serve {
namespace {

text::Batch batch_of(std::span<const Sequence* const> sequences) {
  std::vector<text::Row> rows;
  for (const Sequence* sequence : sequences) rows.push_back({sequence->ids, sequence->second});
  return text::make_batch(rows);
}

}  // namespace

const char* name_of(Kind kind) {
  static constexpr const char* names[] = {"embedding", "classifier", "reranker",
                                          "question-answering", "other"};
  static_assert(std::size(names) == static_cast<std::size_t>(Kind::other) + 1);
  return names[static_cast<std::size_t>(kind)];
}

std::string ModelSetup::label_of(std::size_t index) const {
  return index < labels.size() ? labels[index] : "LABEL_" + std::to_string(index);
}

RunFn make_run_fn(std::shared_ptr<runtime::Session> session, Head head) {
  return [session = std::move(session),
          head = std::move(head)](std::span<const Sequence* const> sequences) {
    const text::Batch batch = batch_of(sequences);
    const std::vector<float> all = runtime::row_values(
        *session, {batch.ids, batch.token_type_ids, batch.offsets}, head.outputs, head.by_token);
    const std::size_t row = all.size() / (head.by_token ? batch.tokens() : batch.rows());
    std::vector<Values> values;
    auto from = all.begin();
    for (const Sequence* sequence : sequences) {
      const std::size_t own = row * (head.by_token ? sequence->ids.size() : 1);
      values.emplace_back(from, from + static_cast<std::ptrdiff_t>(own));
      from += static_cast<std::ptrdiff_t>(own);
    }
    return values;
  };
}

std::string hidden_output(const runtime::Session& session) {
  std::string found;
  for (const ir::Port& port : session.outputs()) {
    if (port.type.shape.size() != 3 || !ir::is_float(port.type.dtype)) continue;
    if (port.name.find("hidden") != std::string::npos) return port.name;
    if (found.empty()) found = port.name;
  }
  return found;
}

Model::Model(ModelSetup setup, BatcherOptions options)
    : setup_(std::move(setup)), decoder_(setup_.tokenizer), options_([&] {
        options.pads = !runtime::takes_packed(setup_.session->plan());
        options.one_request = setup_.session->plan().depends_on_batch();
        if (setup_.fixed_batch > 0)
          options.max_batch_sequences =
              std::min(options.max_batch_sequences, static_cast<std::size_t>(setup_.fixed_batch));
        options.on_batch = [this, next = std::move(options.on_batch)](const BatchDone& done) {
          health_.count(done.failed);
          if (next) next(done);
        };
        return std::move(options);
      }()) {
  batcher_ = std::make_unique<Batcher>(make_run_fn(setup_.session, setup_.head), options_);
}

Batcher& Model::hidden_states() {
  const std::lock_guard lock(mutex_);
  using Clock = std::chrono::steady_clock;
  if (!hidden_states_ && Clock::now() >= next_load_) try {
      const auto session = setup_.load_hidden_states ? setup_.load_hidden_states() : setup_.session;
      const std::string output = hidden_output(*session);
      if (output.empty()) throw Error("the model gives no hidden states [batch, seq, hidden]");
      hidden_states_ =
          std::make_unique<Batcher>(make_run_fn(session, Head{{output}, true}), options_);
      loaded_ = hidden_states_.get();
    } catch (const std::exception& error) {
      load_error_ = backend_error(error).what();
      next_load_ = Clock::now() + setup_.reload_interval;
    }
  // The server's fault, whatever the code of the error.
  if (!hidden_states_) throw HttpError(424, "Backend", load_error_);
  return *hidden_states_;
}

Batcher::Depth Model::depth() const {
  Batcher::Depth depth = batcher_->depth();
  if (const Batcher* hidden = loaded_) {
    const Batcher::Depth more = hidden->depth();
    depth.requests += more.requests;
    depth.tokens += more.tokens;
  }
  return depth;
}

void Model::drain() {
  batcher_->drain();
  const std::lock_guard lock(mutex_);
  if (hidden_states_) hidden_states_->drain();
}

Batcher::Ticket Model::submit_health_check() {
  const std::size_t length = std::min<std::size_t>(setup_.max_length, 64);
  const Sequence sequence{std::vector<std::int32_t>(length, 1)};
  return batcher_->submit({sequence, sequence});
}

void Model::warm_up() {
  if (!setup_.head.outputs.empty()) submit_health_check().get();
}

void Model::start_health_check() {
  if (!is_suspicious() || setup_.head.outputs.empty()) return;
  const std::lock_guard lock(probe_mutex_);
  if (health_check_ && !health_check_->wait_for(std::chrono::milliseconds(0))) return;
  try {
    health_check_ = std::make_shared<const Batcher::Ticket>(submit_health_check());
  } catch (const std::exception&) {  // the queue is full, or closed
    health_check_ = nullptr;
  }
}

std::optional<BatchHealth::Clock::duration> Model::failing(std::chrono::milliseconds longest,
                                                           BatchHealth::Clock::time_point until) {
  using Clock = BatchHealth::Clock;
  const Batcher* hidden = loaded_;
  const auto begin =
      std::min(batcher_->oldest_run(), hidden ? hidden->oldest_run() : Clock::time_point::max());
  if (begin < Clock::now() - longest) return Clock::now() - begin;
  const auto since = health_.failing_since();
  if (!since || setup_.head.outputs.empty()) return std::nullopt;
  start_health_check();
  const auto probe = [&] {
    const std::lock_guard lock(probe_mutex_);
    return health_check_;
  }();
  if (probe) probe->wait_until(until);
  if (!health_.failing_since()) return std::nullopt;
  return Clock::now() - *since;
}

}  // namespace bertcl::serve
