// SPDX-License-Identifier: Apache-2.0
// Counters and histograms for Prometheus.
#pragma once
#include <memory>
#include <string>

#include "serve/batcher.hpp"

namespace bertcl::serve {

class Service;
struct RequestRecord;

/// Any thread may call it at any time.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  /// All metrics of a model, at 0: what counts their growth sees the first event, too.
  void add_model(const std::string& name);
  void count_request(const std::string& method, const RequestRecord& record, int status,
                     double seconds);
  void count_batch(const std::string& model, const BatchDone& batch);
  /// The metrics in Prometheus' text format 0.0.4, with the depths of the queues as they are now.
  std::string text(const Service& service) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bertcl::serve
