// SPDX-License-Identifier: Apache-2.0
// Three stages with a bounded queue between each: tokenize items, run the model, finish items.
#include "tasks/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "support/fail.hpp"
#include "support/option_name.hpp"
#include "support/stopwatch.hpp"
#include "tasks/bounded_queue.hpp"

namespace bertcl::tasks {
namespace {

/// Consecutive items, whose sequences are sorted by length together.
struct Group {
  std::size_t first = 0, items = 0;
  std::vector<Sequence> sequences;
  std::vector<std::size_t> item_of;  // [sequences]
};

using GroupQueue = BoundedQueue<std::unique_ptr<Group>>;

/// Groups that wait before a stage.
constexpr std::size_t kQueueCapacity = 2;

class Evaluator {
 public:
  Evaluator(const Task& task, const text::Tokenizer& tokenizer, const EvaluateOptions& options,
            const text::RunBatchFn& model, const ProgressFn& progress, Evaluation& evaluation)
      : task_(task),
        tokenizer_(tokenizer),
        options_(options),
        model_(model),
        progress_(progress),
        evaluation_(evaluation) {}

  void run() {
    {
      std::jthread tokenizing, finishing;
      guarded([&] {  // also for a thread that cannot be started
        tokenizing = std::jthread([&] {
          guarded([&] { tokenize(); });
          ready_.close();
        });
        finishing = std::jthread([&] {
          guarded([&] {
            while (const auto group = done_.pop())
              for (std::size_t i = 0; i < (*group)->items; ++i)
                evaluation_.results->finish((*group)->first + i);
          });
        });
        while (auto group = ready_.pop()) {
          run_model(**group);
          (*group)->sequences = {};
          if (!done_.push(std::move(*group))) return;
        }
      });
      done_.close();
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  /// A stage that fails closes both queues, so that no other one waits for ever.
  template <class Stage>
  void guarded(const Stage& stage) {
    try {
      stage();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      ready_.close();
      done_.close();
    }
  }

  void tokenize() {
    auto group = std::make_unique<Group>();
    bool any = false;
    for (std::size_t item = 0; item < evaluation_.items; ++item) {
      bool cut = false;
      for (Sequence& sequence : task_.encode(item, tokenizer_, options_.encode)) {
        cut = cut || sequence.cut > 0;
        group->item_of.push_back(item);
        group->sequences.push_back(std::move(sequence));
      }
      evaluation_.items_cut += cut ? 1 : 0;
      ++group->items;
      any = any || !group->sequences.empty();
      const bool full = task_.group_size() > 0 && group->sequences.size() >= task_.group_size();
      if (!full && item + 1 < evaluation_.items) continue;
      if (!ready_.push(std::move(group))) return;
      group = std::make_unique<Group>();
      group->first = item + 1;
    }
    if (!any)
      fail("{}: nothing to score: no word pieces in the {} {} read", options_.origin,
           evaluation_.items, task_.unit());
  }

  void run_model(const Group& group) {
    const std::vector<Sequence>& sequences = group.sequences;
    const auto take = [&](std::size_t index, std::span<const float> output) {
      const std::size_t item = group.item_of[index];
      if (!options_.allow_nonfinite && !text::all_finite(output))
        throw text::NonfiniteOutput(
            fmt::format("the model returned NaN or infinity for item {} of the data, "
                        "counted from 0; {} continues",
                        item, option_name("allow-nonfinite")),
            item);
      evaluation_.results->add(item, sequences[index], output);
    };
    const std::size_t tokens = evaluation_.tokens;
    const double seconds = evaluation_.model_seconds;
    const auto tell = [&](const text::Done& done) {
      evaluation_.tokens = tokens + done.tokens;
      evaluation_.model_seconds = seconds + done.seconds;
      if (!progress_) return;
      const std::size_t items = group.first + group.items * done.rows / sequences.size();
      const bool streams = task_.group_size() > 0;
      progress_({streams ? items : done.rows, streams ? evaluation_.items : sequences.size(),
                 evaluation_.tokens, evaluation_.model_seconds});
    };
    text::run_rows(rows_of(sequences), task_.head(), options_.batches, model_, take, tell);
    evaluation_.sequences += sequences.size();
  }

  const Task& task_;
  const text::Tokenizer& tokenizer_;
  const EvaluateOptions& options_;
  const text::RunBatchFn& model_;
  const ProgressFn& progress_;
  Evaluation& evaluation_;
  GroupQueue ready_{kQueueCapacity}, done_{kQueueCapacity};
  std::mutex mutex_;
  std::exception_ptr failure_;  // the first of any thread
};

}  // namespace

std::string progress_unit(const Task& task) {
  return task.group_size() > 0 ? task.unit() : "sequences";
}

Evaluation evaluate(const Task& task, const text::Tokenizer& tokenizer,
                    const EvaluateOptions& options, const text::RunBatchFn& model,
                    const ProgressFn& progress, std::size_t limit) {
  const Stopwatch clock;
  Evaluation evaluation;
  evaluation.items = limit == 0 ? task.size() : std::min(limit, task.size());
  evaluation.results = task.results(evaluation.items, tokenizer);
  Evaluator(task, tokenizer, options, model, progress, evaluation).run();
  evaluation.tokens_padded =
      evaluation.sequences * static_cast<std::size_t>(options.encode.max_length);
  evaluation.metrics = evaluation.results->metrics();
  evaluation.total_seconds = clock.seconds();
  return evaluation;
}

}  // namespace bertcl::tasks
