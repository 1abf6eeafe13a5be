// SPDX-License-Identifier: Apache-2.0
// Latency and throughput of requests from one or several threads.
#include "tools/measure/request_load.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <future>
#include <iterator>
#include <latch>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "support/stopwatch.hpp"
#include "tools/measure/percentile.hpp"

namespace bertcl::tools {
namespace {

/// What the streams share.
class Load {
 public:
  Load(const std::function<void()>& run, const LoadOptions& options,
       const std::function<void(std::size_t, std::size_t)>& progress)
      : run_(run), options_(options), progress_(progress) {}

  void stream() noexcept {
    try {
      while (may_begin()) {
        const Stopwatch clock;
        run_();
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

  const std::function<void()>& run_;
  const LoadOptions& options_;
  const std::function<void(std::size_t, std::size_t)>& progress_;
  const Stopwatch clock_;
  std::mutex mutex_;
  std::exception_ptr failure_;
  std::vector<double> latencies_;
  double seconds_ = 0.0;
  std::size_t begun_ = 0;
};

/// The runs of each stream; the first run of this thread is made already. Streams begin together:
/// the request of one that was over before another began would serve both.
void warm_up(const std::function<void()>& run, const LoadOptions& options) {
  std::latch start(options.streams);
  const auto repeat = [&](int runs) {
    start.arrive_and_wait();
    for (int i = 0; i < runs; ++i) run();
  };
  std::vector<std::future<void>> others;
  others.reserve(static_cast<std::size_t>(options.streams));
  try {
    for (int i = 1; i < options.streams; ++i)
      others.push_back(std::async(std::launch::async, repeat, options.warmup));
  } catch (...) {  // no more threads: those that are there would wait for the others
    start.count_down(options.streams - std::ssize(others));
    throw;
  }
  repeat(options.warmup - 1);
  for (std::future<void>& other : others) other.get();
}

LoadResult run_streams(const std::function<void()>& run, const LoadOptions& options,
                       const std::function<void(std::size_t, std::size_t)>& progress) {
  Load load(run, options, progress);
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

LoadResult measure_load(const std::function<void()>& run, const LoadOptions& options,
                        const std::function<void(std::size_t done, std::size_t total)>& progress) {
  const Stopwatch first;
  run();
  const double first_ms = first.milliseconds();
  warm_up(run, options);
  LoadResult result = run_streams(run, options, progress);
  result.first_ms = first_ms;
  return result;
}

}  // namespace bertcl::tools
