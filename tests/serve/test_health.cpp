// SPDX-License-Identifier: Apache-2.0
// What health says of a device that fails, and what its clients get.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <thread>

#include "bertcl/error.hpp"
#include "serve/inputs.hpp"
#include "tests/serve/models.hpp"
#include "tests/support/failing_opencl.hpp"

namespace bertcl::serve {
namespace {

using testing::HasSubstr;
using tests::TestService;

/// While it lives, the device refuses all launches.
struct LostDevice : bertcl::tests::FailingOpencl {
  LostDevice() : FailingOpencl("clEnqueueNDRangeKernel", 1, 1'000'000) {}
};

int embed(TestService& service) { return service.status("/embed", {{"inputs", "a"}}); }

int get(TestService& service, const std::string& path) { return service.call("GET", path).status; }

TEST(Health, ADeviceThatFailsTakesRequestsAwayUntilItRunsAgain) {
  TestService service;
  ASSERT_EQ(embed(service), 200);
  {
    const LostDevice lost;
    for (int i = 1; i < BatchHealth::kSuspicious; ++i) EXPECT_EQ(embed(service), 424);
    EXPECT_EQ(get(service, "/health"), 200) << "requests may be the reason";
    EXPECT_EQ(embed(service), 424);
    const HttpResponse health = service.call("GET", "/health");
    EXPECT_EQ(health.status, 503);
    EXPECT_THAT(health.body, HasSubstr("all batches of the model 'vectors' have failed for 0 s"));
    for (const char* path : {"/ping", "/v2/health/ready", "/v2/models/vectors/ready"})
      EXPECT_EQ(get(service, path), 503) << path;
    EXPECT_THAT(service.call("GET", "/v2/health/ready").headers,
                Contains(Pair("Retry-After", "1")));
    EXPECT_EQ(get(service, "/v2/health/live"), 200) << "not yet";
  }
  for (const char* path : {"/health", "/v2/health/ready", "/v2/models/vectors/ready"})
    EXPECT_EQ(get(service, path), 200) << path;
  EXPECT_EQ(embed(service), 200);
}

TEST(Health, AServerWhoseDeviceFailsForLongIsNotLive) {
  TestService service({.service = {.failing = std::chrono::milliseconds(1)}});
  {
    const LostDevice lost;
    EXPECT_EQ(get(service, "/v2/health/live"), 200) << "no batch has failed";
    for (int i = 0; i < BatchHealth::kSuspicious; ++i) EXPECT_EQ(embed(service), 424);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(get(service, "/v2/health/live"), 503);
  }
  EXPECT_EQ(get(service, "/v2/health/live"), 200) << "it asks itself whether the device is back";
}

TEST(Health, RequestsThatFailByTheirOwnFaultDoNotTakeOthersAway) {
  TestService service({.service = {.failing = std::chrono::milliseconds(0)}});
  Batcher& batcher = service.service().models().front()->batcher();
  for (int i = 0; i < 5; ++i) {
    Batcher::Ticket ticket =
        batcher.submit([] { throw Error("it failed", ErrorCode::device); }, 1, {});
    EXPECT_THROW(ticket.get(), Error);
  }
  EXPECT_EQ(get(service, "/health"), 200);
  EXPECT_EQ(get(service, "/v2/health/live"), 200);
}

TEST(Health, TensorsThatTheModelRefusesAreNoFailuresOfTheDevice) {
  int failed = 0;
  TestService service(
      {.batcher = {.on_batch = [&](const BatchDone& done) { failed += done.failed ? 1 : 0; }}});
  Model& model = *service.service().models().front();
  const auto run = [&](ErrorCode code) {
    Batcher::Ticket ticket = model.batcher().submit([&] { throw Error("no", code); }, 1, {});
    EXPECT_THROW(ticket.get(), Error);
  };
  for (int i = 0; i < BatchHealth::kSuspicious; ++i) run(ErrorCode::invalid_argument);
  EXPECT_FALSE(model.is_suspicious());
  for (int i = 0; i < BatchHealth::kSuspicious; ++i) run(ErrorCode::device);
  run(ErrorCode::invalid_argument);
  EXPECT_TRUE(model.is_suspicious()) << "they do not tell that the device is back";
  EXPECT_EQ(failed, BatchHealth::kSuspicious);
}

/// Work that an executor does until it is released.
class Held {
 public:
  explicit Held(Batcher& batcher)
      : ticket_(batcher.submit([ended = release_.get_future().share()] { ended.wait(); }, 1, {})) {
    while (batcher.oldest_run() > BatchHealth::Clock::now()) std::this_thread::yield();
  }
  void release() {
    release_.set_value();
    ticket_.get();
  }

 private:
  std::promise<void> release_;
  Batcher::Ticket ticket_;
};

TEST(Health, ADeviceThatHangsIsNotLive) {
  TestService service(
      {.service = {.timeout = std::chrono::seconds(1), .failing = std::chrono::seconds(1)}});
  Held held(service.service().models().front()->batcher());
  for (const char* path : {"/health", "/v2/models/vectors/ready", "/v2/health/live"})
    EXPECT_EQ(get(service, path), 200) << path << ": a long batch";
  std::this_thread::sleep_for(std::chrono::milliseconds(1010));
  for (const char* path : {"/health", "/v2/models/vectors/ready", "/v2/health/live"})
    EXPECT_EQ(get(service, path), 503) << path;
  held.release();
  for (const char* path : {"/health", "/v2/models/vectors/ready", "/v2/health/live"})
    EXPECT_EQ(get(service, path), 200) << path;
}

// Health needs no key: whoever asks for it must not fill the queue.
TEST(Health, AProbeBatchIsSharedByAllWhoAsk) {
  TestService service;
  Model& model = *service.service().models().front();
  {
    const LostDevice lost;
    for (int i = 0; i < BatchHealth::kSuspicious; ++i) EXPECT_EQ(embed(service), 424);
  }
  Held held(model.batcher());
  std::vector<std::future<std::string>> asked;
  for (int i = 0; i < 4; ++i)
    asked.push_back(
        std::async(std::launch::async, [&] { return service.service().unavailable(); }));
  std::size_t most = 0;
  for (std::future<std::string>& one : asked) {
    while (one.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
      most = std::max(most, model.depth().requests);
    EXPECT_THAT(one.get(), HasSubstr("have failed for"));
  }
  EXPECT_EQ(most, 1u);
  held.release();
  EXPECT_EQ(service.service().unavailable(), "") << "the device is back";
}

TEST(Health, WhatARequestWaitedBeforeItsTokensRunCountsForItsTimeout) {
  TestService service({.service = {.timeout = std::chrono::seconds(5)}});
  Model& model = *service.service().models().front();
  Held held(model.hidden_states());
  const HttpRequest call{"POST", "/embed_all", ""};
  RequestRecord record;
  Context context{service.service(), call, record};
  context.begin -= std::chrono::seconds(5);
  const auto before = BatchHealth::Clock::now();
  EXPECT_THROW(embed_tokens(context, model, {{{101, 102}}}), HttpError);
  EXPECT_LT(BatchHealth::Clock::now() - before, std::chrono::seconds(3));
  held.release();
}

// openai's clients and outlier detection of proxies take 4xx for a fault of the request.
TEST(Health, ADeviceThatFailsIsAFaultOfTheServer) {
  TestService service({.models = {"vectors", "score"}});
  const LostDevice lost;
  const auto reply = [&](const std::string& path, const nlohmann::json& body) {
    return service.call("POST", path, body.dump());
  };
  EXPECT_EQ(reply("/v1/embeddings", {{"input", "a"}, {"model", "score"}}).status, 400)
      << "no failure, a request for a model of another kind";
  const HttpResponse first = reply("/v1/embeddings", {{"input", "a"}});
  EXPECT_EQ(first.status, 500);
  EXPECT_THAT(first.body, HasSubstr("server_error"));
  EXPECT_EQ(reply("/embeddings", {{"input", "a"}}).status, 500);
  const HttpResponse third = reply("/v1/embeddings", {{"input", "a"}});
  EXPECT_EQ(third.status, 503) << "batches have failed one after the other";
  EXPECT_THAT(third.headers, testing::Contains(testing::Pair("Retry-After", "1")));
  EXPECT_EQ(embed(service), 424) << "as text-embeddings-inference has it";
  EXPECT_EQ(reply("/v2/rerank", {{"query", "a"}, {"documents", {"b"}}}).status, 500);
  const nlohmann::json ids = {
      {"name", "input_ids"}, {"datatype", "INT64"}, {"shape", {1, 1}}, {"data", {101}}};
  nlohmann::json mask = ids;
  mask["name"] = "attention_mask";
  mask["data"] = {1};
  EXPECT_EQ(reply("/v2/models/score/infer", {{"inputs", {ids, mask}}}).status, 500);
  EXPECT_EQ(service.status("/rerank", {{"query", "a"}, {"texts", {"b"}}}), 424);
}

std::string metrics_of(TestService& service) { return service.call("GET", "/metrics").body; }

// increase() of Prometheus does not see the first event of a counter that begins with it.
TEST(Health, MetricsOfAModelBeginAtZero) {
  Metrics* metrics = nullptr;
  TestService service({.batcher = {.on_batch = [&](const BatchDone& done) {
                         metrics->count_batch("vectors", done);
                       }}});
  metrics = &service.service().metrics();
  for (const char* name :
       {"bertcl_failed_batches_total", "bertcl_tokens_total", "bertcl_device_seconds_total",
        "bertcl_queue_seconds_count", "bertcl_batch_tokens_count", "bertcl_batch_sequences_count",
        "bertcl_queue_requests"})
    EXPECT_THAT(metrics_of(service), HasSubstr(std::string(name) + "{model=\"vectors\"} 0\n"));
  EXPECT_THAT(metrics_of(service), HasSubstr("bertcl_build_info{version=\""));
  ASSERT_EQ(embed(service), 200);
  EXPECT_THAT(metrics_of(service), HasSubstr("bertcl_queue_seconds_count{model=\"vectors\"} 1\n"));
  {
    const LostDevice lost;
    embed(service);
  }
  EXPECT_THAT(metrics_of(service), HasSubstr("bertcl_failed_batches_total{model=\"vectors\"} 1\n"));
}

TEST(Health, RequestsForMoreDimensionsThanThereAreRunNoBatch) {
  int batches = 0;
  TestService service({.batcher = {.on_batch = [&](const BatchDone&) { ++batches; }}});
  for (const char* path : {"/embed", "/v1/embeddings"})
    EXPECT_EQ(service.status(path, {{"input", "a"}, {"inputs", "a"}, {"dimensions", 17}}), 422);
  EXPECT_EQ(batches, 0);
  EXPECT_EQ(service.status("/embed", {{"inputs", "a"}, {"dimensions", 16}}), 200);
  EXPECT_EQ(batches, 1);
}

TEST(Health, RequestsAreCountedByMethodAndModel) {
  TestService service;
  Metrics& metrics = service.service().metrics();
  metrics.count_request("POST", {.route = "/", .model = "vectors"}, 200, 70.0);
  metrics.count_request("GET", {.route = "/"}, 200, 0.1);
  metrics.count_request("BREW", {.route = "/"}, 405, 0.1);
  for (const char* line :
       {R"(bertcl_requests_total{method="POST",model="vectors",route="/",status="200"} 1)",
        R"(bertcl_requests_total{method="GET",model="",route="/",status="200"} 1)",
        R"(bertcl_requests_total{method="other",model="",route="/",status="405"} 1)",
        R"(bertcl_request_seconds_bucket{method="POST",model="vectors",route="/",le="60"} 0)",
        R"(bertcl_request_seconds_bucket{method="POST",model="vectors",route="/",le="120"} 1)"})
    EXPECT_THAT(metrics_of(service), HasSubstr(line));
}

}  // namespace
}  // namespace bertcl::serve
