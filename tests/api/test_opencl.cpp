// SPDX-License-Identifier: Apache-2.0
// Sessions on a context, a queue and buffers of our own give the bits of others.
#include "bertcl/opencl.hpp"

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "tests/api/model.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl {
namespace {

using tests::sequences_of;

template <class T>
std::shared_ptr<std::remove_pointer_t<T>> owned(T object, cl_int(CL_API_CALL* release)(T)) {
  return {object, release};
}

/// The first device, with a context and a queue.
struct Host {
  cl_device_id device = nullptr;
  std::shared_ptr<_cl_context> context;
  std::shared_ptr<_cl_command_queue> queue;

  Host() {
    cl_platform_id platform = nullptr;
    EXPECT_EQ(clGetPlatformIDs(1, &platform, nullptr), CL_SUCCESS);
    EXPECT_EQ(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), CL_SUCCESS);
    context =
        owned(clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr), clReleaseContext);
    queue = make_queue(0);
  }
  std::shared_ptr<_cl_command_queue> make_queue(cl_command_queue_properties flags) const {
    const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, flags, 0};
    return owned(clCreateCommandQueueWithProperties(context.get(), device, properties, nullptr),
                 clReleaseCommandQueue);
  }
  template <class T>
  std::shared_ptr<_cl_mem> buffer(std::vector<T> values) const {
    return owned(clCreateBuffer(context.get(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                values.size() * sizeof(T), values.data(), nullptr),
                 clReleaseMemObject);
  }
  template <class T>
  std::vector<T> read(const std::shared_ptr<_cl_mem>& memory, std::size_t count) const {
    std::vector<T> values(count);
    EXPECT_EQ(clEnqueueReadBuffer(queue.get(), memory.get(), CL_TRUE, 0, count * sizeof(T),
                                  values.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    return values;
  }
};

std::vector<std::int32_t> narrow(const std::vector<std::int64_t>& values, std::size_t skipped) {
  std::vector<std::int32_t> result(skipped, 1 << 30);  // what no one may read
  for (const std::int64_t value : values) result.push_back(static_cast<std::int32_t>(value));
  return result;
}

std::vector<float> numbers(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

class ApiOpencl : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    host_ = new Host;
    session_ = new Session(load_on_queue(host_->context.get(), host_->queue.get(), tests::model));
  }
  static void TearDownTestSuite() {
    delete session_;
    delete host_;
  }
  /// Ids and segments at byte offsets of one buffer each, as parts of larger ones are.
  static DeviceSequences on_device(const Sequences& s, std::shared_ptr<_cl_mem>& ids,
                                   std::shared_ptr<_cl_mem>& types) {
    ids = host_->buffer(narrow(s.ids, 3));
    types = host_->buffer(narrow(s.token_type_ids, 5));
    return {{ids.get(), 12}, {types.get(), 20}, s.offsets};
  }
  static Host* host_;
  static Session* session_;
};
Host* ApiOpencl::host_ = nullptr;
Session* ApiOpencl::session_ = nullptr;

TEST_F(ApiOpencl, GivesTheBitsOfASessionOfItsOwn) {
  for (const auto& lengths : {std::vector<std::int64_t>{1}, {7, 33, 1}, {64, 64}}) {
    const Sequences s = sequences_of(lengths, 2);
    const Tensors expected = session_->run(s);
    std::shared_ptr<_cl_mem> ids, types;
    const DeviceSequences given = on_device(s, ids, types);
    const std::size_t tokens = s.ids.size();
    const auto start = host_->buffer(std::vector<float>(tokens, 9)),
               end = host_->buffer(std::vector<float>(tokens + 2, 9));
    DeviceRun run = start_on_device(
        *session_, given, {{"start_logits", {start.get()}}, {"end_logits", {end.get(), 4}}});
    run.finish();
    EXPECT_EQ(host_->read<float>(start, tokens), numbers(expected.at("start_logits")));
    const auto around = host_->read<float>(end, tokens + 2);
    EXPECT_EQ(std::vector<float>(around.begin() + 1, around.end() - 1),
              numbers(expected.at("end_logits")));
    EXPECT_EQ(around.front(), 9) << "in front of the offset";
    EXPECT_EQ(around.back(), 9) << "after the output";
  }
  const Session other = Session::load(tests::model);
  const Sequences s = sequences_of({7, 33}, 3);
  if (other.info().device == session_->info().device) {
    EXPECT_EQ(numbers(other.run(s).at("end_logits")), numbers(session_->run(s).at("end_logits")));
  }
}

TEST_F(ApiOpencl, AModelMayBeAFolder) {
  const Session session =
      load_on_queue(host_->context.get(), host_->queue.get(), tests::model.parent_path());
  EXPECT_EQ(session.info().inputs.size(), 3u);
}

TEST_F(ApiOpencl, RunsWaitForEventsAndEndWithOne) {
  const Sequences s = sequences_of({20, 11}, 4);
  const auto expected = numbers(session_->run(s).at("start_logits"));
  std::shared_ptr<_cl_mem> ids, types;
  const DeviceSequences given = on_device(s, ids, types);
  const auto output = host_->buffer(std::vector<float>(31, 9));
  const auto gate = owned(clCreateUserEvent(host_->context.get(), nullptr), clReleaseEvent);
  const cl_event events[] = {gate.get()};
  DeviceRun run = start_on_device(*session_, given, {{"start_logits", {output.get()}}}, events);
  cl_int status = CL_COMPLETE;
  clGetEventInfo(run.event(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr);
  EXPECT_NE(status, CL_COMPLETE) << "before the event that it waits for";
  EXPECT_EQ(clSetUserEventStatus(gate.get(), CL_COMPLETE), CL_SUCCESS);
  const cl_event done = run.event();
  EXPECT_EQ(clWaitForEvents(1, &done), CL_SUCCESS);
  EXPECT_EQ(host_->read<float>(output, 31), expected);
  run.finish();
  EXPECT_ERROR(HasSubstr("finished"), run.finish());
}

TEST_F(ApiOpencl, RunsFollowEachOtherWithoutTheHost) {
  const Sequences first = sequences_of({20}, 5), second = sequences_of({9, 2}, 6);
  std::shared_ptr<_cl_mem> ids[2], types[2];
  const DeviceSequences given[] = {on_device(first, ids[0], types[0]),
                                   on_device(second, ids[1], types[1])};
  const auto a = host_->buffer(std::vector<float>(20, 9)),
             b = host_->buffer(std::vector<float>(11, 9));
  {
    const DeviceRun one = start_on_device(*session_, given[0], {{"end_logits", {a.get()}}});
    const DeviceRun two = start_on_device(*session_, given[1], {{"end_logits", {b.get()}}});
  }  // nobody finishes them
  EXPECT_EQ(host_->read<float>(a, 20), numbers(session_->run(first).at("end_logits")));
  EXPECT_EQ(host_->read<float>(b, 11), numbers(session_->run(second).at("end_logits")));
}

/// Whether `work` ends while the event is not set, which it is in the end.
bool ends_before(const std::shared_ptr<_cl_event>& event, const std::function<void()>& work) {
  std::future<void> working = std::async(std::launch::async, work);
  const bool ended = working.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  EXPECT_EQ(clSetUserEventStatus(event.get(), CL_COMPLETE), CL_SUCCESS);
  working.get();
  return ended;
}

// The later one waits for an event that the caller sets when it has the outputs of the first.
TEST_F(ApiOpencl, AFinishedRunWaitsForNoLaterOne) {
  const Sequences s = sequences_of({20, 11}, 9);
  const auto expected = numbers(session_->run(s).at("start_logits"));
  std::shared_ptr<_cl_mem> ids, types;
  const DeviceSequences given = on_device(s, ids, types);
  const auto first = host_->buffer(std::vector<float>(31, 9)),
             later = host_->buffer(std::vector<float>(31, 9));
  for (const bool on_host : {true, false}) {
    const auto gate = owned(clCreateUserEvent(host_->context.get(), nullptr), clReleaseEvent);
    const cl_event events[] = {gate.get()};
    std::optional<Session::Run> of_host;
    std::optional<DeviceRun> of_device;
    if (on_host)
      of_host.emplace(session_->start(s));
    else
      of_device.emplace(start_on_device(*session_, given, {{"start_logits", {first.get()}}}));
    DeviceRun run = start_on_device(*session_, given, {{"start_logits", {later.get()}}}, events);
    Tensors outputs;
    EXPECT_TRUE(ends_before(gate, [&] {
      if (on_host)
        outputs = of_host->finish();
      else
        of_device->finish();
    })) << (on_host ? "of the host" : "on the device");
    run.finish();
    EXPECT_EQ(on_host ? numbers(outputs.at("start_logits")) : host_->read<float>(first, 31),
              expected);
    EXPECT_EQ(host_->read<float>(later, 31), expected);
  }
}

// Neither a request that is made for it nor memory for larger sizes waits for the queue.
TEST_F(ApiOpencl, ARunIsQueuedAfterOneThatWaits) {
  const Session session = load_on_queue(host_->context.get(), host_->queue.get(), tests::model);
  const Sequences small = sequences_of({9}, 10), large = sequences_of({90, 40}, 11);
  const auto expected = numbers(session_->run(large).at("end_logits"));
  std::shared_ptr<_cl_mem> ids[2], types[2];
  const DeviceSequences one = on_device(small, ids[0], types[0]),
                        two = on_device(large, ids[1], types[1]);
  const auto a = host_->buffer(std::vector<float>(9, 9)),
             b = host_->buffer(std::vector<float>(130, 9));
  start_on_device(session, one, {}).finish();
  const auto gate = owned(clCreateUserEvent(host_->context.get(), nullptr), clReleaseEvent);
  const cl_event events[] = {gate.get()};
  std::vector<DeviceRun> runs;
  runs.push_back(start_on_device(session, one, {{"end_logits", {a.get()}}}, events));
  EXPECT_TRUE(ends_before(gate, [&] {
    runs.push_back(start_on_device(session, one, {{"end_logits", {a.get()}}}));
    runs.push_back(start_on_device(session, two, {{"end_logits", {b.get()}}}));
  }));
  for (DeviceRun& run : runs) run.finish();
  EXPECT_EQ(host_->read<float>(b, 130), expected);

  // Of a request that has run smaller ones, with a command of the caller before it.
  const auto barrier = owned(clCreateUserEvent(host_->context.get(), nullptr), clReleaseEvent);
  const cl_event others[] = {barrier.get()};
  const Session another = load_on_queue(host_->context.get(), host_->queue.get(), tests::model);
  start_on_device(another, one, {}).finish();
  EXPECT_EQ(clEnqueueBarrierWithWaitList(host_->queue.get(), 1, others, nullptr), CL_SUCCESS);
  std::optional<DeviceRun> run;
  EXPECT_TRUE(ends_before(barrier, [&] {
    run.emplace(start_on_device(another, two, {{"end_logits", {b.get()}}}));
  }));
  run->finish();
  EXPECT_EQ(host_->read<float>(b, 130), expected);
}

TEST_F(ApiOpencl, AnIdOutsideItsTableIsAnErrorOfThatRunAlone) {
  Sequences s = sequences_of({4}, 7);
  const auto expected = numbers(session_->run(s).at("end_logits"));
  Sequences wrong = s;
  wrong.ids[2] = 1 << 20;
  std::shared_ptr<_cl_mem> ids, types;
  const auto output = host_->buffer(std::vector<float>(4, 9));
  const DeviceSequences given = on_device(wrong, ids, types);
  DeviceRun run = start_on_device(*session_, given, {{"end_logits", {output.get()}}});
  EXPECT_ERROR(HasSubstr("token id"), run.finish());
  { const DeviceRun dropped = start_on_device(*session_, given, {}); }
  EXPECT_EQ(numbers(session_->run(s).at("end_logits")), expected);
}

TEST_F(ApiOpencl, WhatDoesNotSuitIsRefusedBeforeItRuns) {
  const Sequences s = sequences_of({6}, 8);
  std::shared_ptr<_cl_mem> ids, types;
  const DeviceSequences given = on_device(s, ids, types);
  const auto small = host_->buffer(std::vector<float>(5, 9));
  const auto start = [&](const DeviceSequences& sequences, const DeviceOutputs& outputs) {
    return error_of([&] { start_on_device(*session_, sequences, outputs); });
  };
  EXPECT_THAT(start(given, {{"end_logits", {small.get()}}}),
              HasSubstr("output 'end_logits': 24 bytes are needed, 20 were given"));
  EXPECT_THAT(start(given, {{"end_logits", {small.get(), 16, 8}}}), HasSubstr("bytes 16 to 24"));
  EXPECT_THAT(start(given, {{"end_logits", {}}}), HasSubstr("no buffer given"));
  EXPECT_THAT(start(given, {{"logits", {small.get()}}}), HasSubstr("no output 'logits'"));
  DeviceSequences wrong = given;
  wrong.ids.offset = 16;
  EXPECT_THAT(start(wrong, {}), HasSubstr("ids: 24 bytes are needed, 20 were given"));
  wrong = given;
  wrong.ids = {};
  EXPECT_THAT(start(wrong, {}), HasSubstr("ids: no buffer given"));
  wrong = given;
  wrong.offsets = {0, 4, 3};
  EXPECT_THAT(start(wrong, {}), HasSubstr("sequence 1"));
  const auto both = host_->buffer(std::vector<float>(12, 9));
  EXPECT_THAT(start(given, {{"start_logits", {both.get()}}, {"end_logits", {both.get(), 20}}}),
              HasSubstr("outputs 'start_logits' and 'end_logits' overlap in a buffer"));
  start_on_device(*session_, given,
                  {{"start_logits", {both.get()}}, {"end_logits", {both.get(), 24}}})
      .finish();
  const cl_buffer_region region{0, 48};
  const auto part = [&] {
    return owned(clCreateSubBuffer(both.get(), 0, CL_BUFFER_CREATE_TYPE_REGION, &region, nullptr),
                 clReleaseMemObject);
  };
  const auto first = part(), second = part();
  EXPECT_THAT(
      start(given, {{"start_logits", {first.get(), 24}}, {"end_logits", {second.get(), 20}}}),
      HasSubstr("outputs 'start_logits' and 'end_logits' overlap in a buffer"));
  EXPECT_THAT(start(given, {{"start_logits", {both.get()}}, {"end_logits", {second.get()}}}),
              HasSubstr("outputs 'start_logits' and 'end_logits' overlap in a buffer"));
  const std::vector<cl_event> none(1, nullptr);
  EXPECT_THAT(error_of([&] { start_on_device(*session_, given, {}, none); }),
              HasSubstr("wait_for holds a null event"));
  const Host stranger;
  const auto foreign = stranger.buffer(std::vector<float>(8, 9));
  EXPECT_THAT(start(given, {{"end_logits", {foreign.get()}}}), HasSubstr("another cl_context"));
  EXPECT_EQ(host_->read<float>(small, 5), std::vector<float>(5, 9));
}

TEST_F(ApiOpencl, ContextAndQueueBelongTogether) {
  const auto load = [](cl_context context, cl_command_queue queue) {
    return error_of([&] { load_on_queue(context, queue, tests::model); });
  };
  const Host other;
  EXPECT_THAT(load(nullptr, other.queue.get()), HasSubstr("null"));
  EXPECT_THAT(load(other.context.get(), nullptr), HasSubstr("null"));
  EXPECT_THAT(load(other.context.get(), host_->queue.get()), HasSubstr("another cl_context"));
  const auto unordered = other.make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  if (!unordered) GTEST_SKIP() << "the device has no queues that are out of order";
  EXPECT_THAT(load(other.context.get(), unordered.get()), HasSubstr("out-of-order"));
}

}  // namespace
}  // namespace bertcl
