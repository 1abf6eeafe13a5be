// SPDX-License-Identifier: Apache-2.0
// Runs independent host work on all cores.
#include "quant/calibration/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <future>
#include <thread>
#include <vector>

namespace bertcl::quant {

void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  const auto take = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      throw;
    }
  };
  const std::size_t threads =
      std::min<std::size_t>(count, std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::future<void>> others;
  for (std::size_t i = 1; i < threads; ++i) others.push_back(std::async(std::launch::async, take));
  std::exception_ptr first;
  const auto keep = [&](const auto& part) {
    try {
      part();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  };
  keep(take);
  for (auto& other : others) keep([&] { other.get(); });
  if (first) std::rethrow_exception(first);
}

}  // namespace bertcl::quant
