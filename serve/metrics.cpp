// SPDX-License-Identifier: Apache-2.0
// The families of metrics, by prometheus-cpp.
#include "serve/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>

#include "serve/service.hpp"

namespace bertcl::serve {
namespace {

using prometheus::Family;
using Buckets = prometheus::Histogram::BucketBoundaries;

const Buckets kSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                          0.5,   1,      2.5,   5,    10,    30,   60,  120};
const Buckets kTokens = {16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
const Buckets kSequences = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};

/// Those of HTTP: clients may send any.
std::string label_of(const std::string& method) {
  const auto known = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
  return std::ranges::find(known, method) != known.end() ? method : "other";
}

}  // namespace

struct Metrics::Impl {
  prometheus::Registry registry;
  Family<prometheus::Counter>& requests =
      family(prometheus::BuildCounter(), "bertcl_requests_total",
             "Requests by method, route, model and status");
  Family<prometheus::Histogram>& latency =
      family(prometheus::BuildHistogram(), "bertcl_request_seconds",
             "Time from the request body to its answer, by method, route and model");
  Family<prometheus::Histogram>& queue_seconds =
      family(prometheus::BuildHistogram(), "bertcl_queue_seconds",
             "Time that a request waited for its first batch, by model");
  Family<prometheus::Counter>& tokens =
      family(prometheus::BuildCounter(), "bertcl_tokens_total", "Tokens processed, by model");
  Family<prometheus::Counter>& device =
      family(prometheus::BuildCounter(), "bertcl_device_seconds_total",
             "Time inside the model, transfers included, by model");
  Family<prometheus::Counter>& failures =
      family(prometheus::BuildCounter(), "bertcl_failed_batches_total", "Failed batches, by model");
  Family<prometheus::Histogram>& batch_tokens =
      family(prometheus::BuildHistogram(), "bertcl_batch_tokens", "Tokens of a batch, by model");
  Family<prometheus::Histogram>& batch_sequences = family(
      prometheus::BuildHistogram(), "bertcl_batch_sequences", "Sequences of a batch, by model");
  Family<prometheus::Gauge>& queue_requests =
      family(prometheus::BuildGauge(), "bertcl_queue_requests",
             "Requests that wait for a batch, by model");
  Family<prometheus::Gauge>& queue_tokens = family(prometheus::BuildGauge(), "bertcl_queue_tokens",
                                                   "Tokens that wait for a batch, by model");

 private:
  template <class T>
  Family<T>& family(prometheus::detail::Builder<T> builder, const char* name, const char* help) {
    return builder.Name(name).Help(help).Register(registry);
  }
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {
  prometheus::BuildGauge()
      .Name("bertcl_build_info")
      .Help("Constant 1; the version is a label")
      .Register(impl_->registry)
      .Add({{"version", BERTCL_VERSION}})
      .Set(1);
}
Metrics::~Metrics() = default;

void Metrics::add_model(const std::string& name) {
  const prometheus::Labels labels = {{"model", name}};
  for (auto* family : {&impl_->tokens, &impl_->device, &impl_->failures}) family->Add(labels);
  impl_->queue_seconds.Add(labels, kSeconds);
  impl_->batch_tokens.Add(labels, kTokens);
  impl_->batch_sequences.Add(labels, kSequences);
}

void Metrics::count_request(const std::string& method, const RequestRecord& record, int status,
                            double seconds) {
  prometheus::Labels labels = {
      {"method", label_of(method)}, {"model", record.model}, {"route", record.route}};
  impl_->latency.Add(labels, kSeconds).Observe(seconds);
  labels["status"] = std::to_string(status);
  impl_->requests.Add(labels).Increment();
}

void Metrics::count_batch(const std::string& model, const BatchDone& batch) {
  const prometheus::Labels labels = {{"model", model}};
  impl_->device.Add(labels).Increment(batch.seconds);
  if (batch.failed) return impl_->failures.Add(labels).Increment();
  for (const double seconds : batch.waited)
    impl_->queue_seconds.Add(labels, kSeconds).Observe(seconds);
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
