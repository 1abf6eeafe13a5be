// SPDX-License-Identifier: Apache-2.0
// The families of metrics, by prometheus-cpp.
#include "serve/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "serve/service.hpp"

namespace bertcl::serve {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;

const Buckets kSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                          0.25,  0.5,    1,     2.5,  5,     10,   30};
const Buckets kTokens = {16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
const Buckets kSequences = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};

}  // namespace

struct Metrics::Impl {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& requests = prometheus::BuildCounter()
                                                          .Name("bertcl_requests_total")
                                                          .Help("Requests by route and status")
                                                          .Register(registry);
  prometheus::Family<prometheus::Histogram>& latency =
      prometheus::BuildHistogram()
          .Name("bertcl_request_seconds")
          .Help("Time from the request's body to its answer, by route")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& tokens = prometheus::BuildCounter()
                                                        .Name("bertcl_tokens_total")
                                                        .Help("Tokens that ran, by model")
                                                        .Register(registry);
  prometheus::Family<prometheus::Counter>& device =
      prometheus::BuildCounter()
          .Name("bertcl_device_seconds_total")
          .Help("Time inside the model, transfers included, by model")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& failures =
      prometheus::BuildCounter()
          .Name("bertcl_failed_batches_total")
          .Help("Batches that the device did not finish, by model")
          .Register(registry);
  prometheus::Family<prometheus::Histogram>& batch_tokens = prometheus::BuildHistogram()
                                                                .Name("bertcl_batch_tokens")
                                                                .Help("Tokens of a batch, by model")
                                                                .Register(registry);
  prometheus::Family<prometheus::Histogram>& batch_sequences =
      prometheus::BuildHistogram()
          .Name("bertcl_batch_sequences")
          .Help("Sequences of a batch, by model")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& queue_requests =
      prometheus::BuildGauge()
          .Name("bertcl_queue_requests")
          .Help("Requests that wait for a batch, by model")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& queue_tokens =
      prometheus::BuildGauge()
          .Name("bertcl_queue_tokens")
          .Help("Tokens that wait for a batch, by model")
          .Register(registry);
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

void Metrics::count_request(const RequestRecord& record, int status, double seconds) {
  impl_->requests.Add({{"route", record.route}, {"status", std::to_string(status)}}).Increment();
  impl_->latency.Add({{"route", record.route}}, kSeconds).Observe(seconds);
}

void Metrics::count_batch(const std::string& model, const BatchDone& batch) {
  const prometheus::Labels labels = {{"model", model}};
  impl_->device.Add(labels).Increment(batch.seconds);
  if (batch.failed) return impl_->failures.Add(labels).Increment();
  impl_->tokens.Add(labels).Increment(static_cast<double>(batch.tokens));
  impl_->batch_tokens.Add(labels, kTokens).Observe(static_cast<double>(batch.tokens));
  impl_->batch_sequences.Add(labels, kSequences).Observe(static_cast<double>(batch.sequences));
}

std::string Metrics::text(const Service& service) const {
  if (service.state() != Service::State::loading)
    for (const auto& model : service.models()) {
      const Batcher::Depth depth = model->depth();
      const prometheus::Labels labels = {{"model", model->setup().name}};
      impl_->queue_requests.Add(labels).Set(static_cast<double>(depth.requests));
      impl_->queue_tokens.Add(labels).Set(static_cast<double>(depth.tokens));
    }
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

}  // namespace bertcl::serve
