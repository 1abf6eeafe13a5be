// SPDX-License-Identifier: Apache-2.0
// Latency and throughput of a session under requests from one or several threads.
#include "tools/measure/request_load.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "support/stopwatch.hpp"
#include "tools/measure/percentile.hpp"

namespace bertcl::tools {
namespace {

/// What the streams share.
class Load {
 public:
  Load(runtime::Session& session, const runtime::Tensors& inputs, const LoadOptions& options,
       const std::function<void(std::size_t, std::size_t)>& progress)
      : session_(session), inputs_(inputs), options_(options), progress_(progress) {}

  void stream() noexcept {
    try {
      while (may_begin()) {
        const Stopwatch clock;
        session_.run(inputs_);
        end(clock.milliseconds());
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
  }

  LoadResult result() {
    if (failure_) std::rethrow_exception(failure_);
    std::ranges::sort(latencies_);
    return {std::move(latencies_), 0.0, seconds_};
  }

 private:
  bool may_begin() {
    const std::lock_guard lock(mutex_);
    if (failure_) return false;
    const bool more = options_.seconds ? begun_ == 0 || clock_.seconds() < *options_.seconds
                                       : begun_ < static_cast<std::size_t>(options_.runs);
    if (more) ++begun_;
    return more;
  }
  void end(double ms) {
    const std::lock_guard lock(mutex_);
    latencies_.push_back(ms);
    seconds_ = clock_.seconds();
    progress_(latencies_.size(), options_.seconds ? 0 : static_cast<std::size_t>(options_.runs));
  }

  runtime::Session& session_;
  const runtime::Tensors& inputs_;
  const LoadOptions& options_;
  const std::function<void(std::size_t, std::size_t)>& progress_;
  const Stopwatch clock_;
  std::mutex mutex_;
  std::exception_ptr failure_;
  std::vector<double> latencies_;
  double seconds_ = 0.0;
  std::size_t begun_ = 0;
};

LoadResult run_streams(runtime::Session& session, const runtime::Tensors& inputs,
                       const LoadOptions& options,
                       const std::function<void(std::size_t, std::size_t)>& progress) {
  Load load(session, inputs, options, progress);
  {
    std::vector<std::jthread> threads;
    for (int i = 1; i < options.streams; ++i) threads.emplace_back([&] { load.stream(); });
    load.stream();
  }
  return load.result();
}

}  // namespace

double LoadResult::runs_per_second() const {
  return static_cast<double>(latencies.size()) / std::max(1e-9, seconds);
}

double LoadResult::mean() const {
  return std::accumulate(latencies.begin(), latencies.end(), 0.0) /
         static_cast<double>(latencies.size());
}

double LoadResult::percentile(double percent) const { return percentile_of(latencies, percent); }

LoadResult measure_load(runtime::Session& session, const runtime::Tensors& inputs,
                        const LoadOptions& options,
                        const std::function<void(std::size_t done, std::size_t total)>& progress) {
  const Stopwatch first;
  session.run(inputs);
  const double first_ms = first.milliseconds();
  if (options.warmup > 1) {  // each stream makes an arena of its own
    LoadOptions warmup = options;
    warmup.seconds.reset();
    warmup.runs = (options.warmup - 1) * options.streams;
    run_streams(session, inputs, warmup, [](std::size_t, std::size_t) {});
  }
  LoadResult result = run_streams(session, inputs, options, progress);
  result.first_ms = first_ms;
  return result;
}

}  // namespace bertcl::tools
