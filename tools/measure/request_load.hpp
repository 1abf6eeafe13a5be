// SPDX-License-Identifier: Apache-2.0
// Latency and throughput of requests from one or several threads.
#pragma once
#include <functional>
#include <optional>
#include <vector>

namespace bertcl::tools {

struct LoadOptions {
  int streams = 1;                ///< threads, each with one request at a time
  int runs = 50;                  ///< of all streams together
  std::optional<double> seconds;  ///< in place of `runs`: as many as begin in that time
  int warmup = 5;                 ///< of each stream before; one run is made in any case
};

struct LoadResult {
  std::vector<double> latencies;  ///< milliseconds of each run, host time with transfers; sorted
  double first_ms = 0.0;          ///< the first run: buffers are made, drivers may compile
  double seconds = 0.0;  ///< from the start of the first measured run to the end of the last

  double runs_per_second() const;
  double mean() const;
  /// Interpolated between two runs, as NumPy's: 50 is the median.
  double percentile(double percent) const;
};

/// Calls `run` from all streams. `progress` is told how many runs are done, of how many; 0 where
/// that is open. What a run throws, this throws.
LoadResult measure_load(const std::function<void()>& run, const LoadOptions& options,
                        const std::function<void(std::size_t done, std::size_t total)>& progress);

}  // namespace bertcl::tools
