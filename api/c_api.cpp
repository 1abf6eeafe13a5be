// SPDX-License-Identifier: Apache-2.0
// The C interface over the C++ one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/c_boundary.hpp"
#include "api/c_session.hpp"
#include "bertcl/bertcl.h"
#include "bertcl/bertcl.hpp"

struct bertcl_results {
  std::vector<std::pair<std::string, bertcl::Tensor>> outputs;
};

namespace bertcl::c {

std::string& last_error() {
  thread_local std::string message;
  return message;
}

Sequences sequences_of(const bertcl_sequences* sequences) {
  const bertcl_sequences given = read(sequences, "sequences");
  constexpr std::int64_t max = std::numeric_limits<std::int32_t>::max();
  if (given.count < 1 || given.count > max || !given.offsets || !given.ids)
    throw Error("sequences: count must be 1 to " + std::to_string(max) +
                ", and offsets and ids must not be NULL");
  Sequences all;
  all.offsets.assign(given.offsets, given.offsets + given.count + 1);
  const std::int64_t tokens = all.offsets.back();
  if (tokens < 0) throw Error("the last offset of the sequences is negative");
  all.ids.assign(given.ids, given.ids + tokens);
  if (given.token_type_ids)
    all.token_type_ids.assign(given.token_type_ids, given.token_type_ids + tokens);
  return all;
}

}  // namespace bertcl::c

namespace {

using bertcl::c::guarded, bertcl::c::last_error, bertcl::c::read, bertcl::c::refuse,
    bertcl::c::write;

static_assert(BERTCL_BOOL == static_cast<int>(bertcl::ElementType::boolean) &&
              BERTCL_I64 == static_cast<int>(bertcl::ElementType::i64));
static_assert(BERTCL_INVALID_ARGUMENT == static_cast<int>(bertcl::ErrorCode::invalid_argument) &&
              BERTCL_BUSY == static_cast<int>(bertcl::ErrorCode::busy) &&
              BERTCL_INTERNAL == static_cast<int>(bertcl::ErrorCode::internal));
static_assert(BERTCL_TASK_FEATURE_EXTRACTION == static_cast<int>(bertcl::Task::feature_extraction));
static_assert(BERTCL_MAX_REQUESTS == bertcl::max_requests);
static_assert(BERTCL_PRECISION_BF16 == static_cast<int>(bertcl::Precision::bf16));

void describe(const std::vector<bertcl::Port>& ports, std::size_t index, const char* things,
              bertcl_tensor* tensor) {
  bertcl::c::check_index(index, ports.size(), things);
  const bertcl::Port& port = ports[index];
  const bertcl_tensor all{sizeof(bertcl_tensor),
                          port.name.c_str(),
                          static_cast<std::int32_t>(port.type),
                          static_cast<std::int32_t>(port.shape.size()),
                          port.shape.data(),
                          nullptr,
                          0};
  write(all, tensor, "tensor");
}

void give(const bertcl_results& results, std::size_t index, bertcl_tensor* tensor) {
  bertcl::c::check_index(index, results.outputs.size(), "results");
  const auto& [name, output] = results.outputs[index];
  const bertcl_tensor all{sizeof(bertcl_tensor),
                          name.c_str(),
                          static_cast<std::int32_t>(output.type()),
                          static_cast<std::int32_t>(output.shape().size()),
                          output.shape().data(),
                          output.bytes().data(),
                          output.bytes().size()};
  write(all, tensor, "tensor");
}

/// The size of a tensor in version 0.1, with all that a run needs: sizeof(bertcl_tensor) grows.
constexpr std::size_t kFirstTensorSize =
    offsetof(bertcl_tensor, bytes) + sizeof(bertcl_tensor::bytes);

/// Those that lie one after the other by the size that the caller's header gives a tensor.
bertcl::Tensors tensors_of(const bertcl_tensor* inputs, std::size_t count) {
  bertcl::Tensors tensors;
  for (std::size_t i = 0; i < count; ++i) {
    const auto* input = reinterpret_cast<const bertcl_tensor*>(
        reinterpret_cast<const std::byte*>(inputs) + i * inputs->size);
    const std::string place = "input " + std::to_string(i);
    if (inputs->size < kFirstTensorSize)
      throw bertcl::Error("the size of " + place +
                          " is not set; set it to the sizeof of its struct");
    if (input->size != inputs->size)
      throw bertcl::Error(place + " has size " + std::to_string(input->size) + ", input 0 " +
                          std::to_string(inputs->size) + "; all have the sizeof of their struct");
    const bertcl_tensor given = read(input, place);
    if (!given.name) throw bertcl::Error(place + " has no name");
    const std::string name = "input '" + std::string(given.name) + "'";
    if (given.type < BERTCL_F32 || given.type > BERTCL_BOOL)
      throw bertcl::Error(name + " has unknown element type " + std::to_string(given.type));
    if (given.rank < 0) throw bertcl::Error(name + " has rank " + std::to_string(given.rank));
    if (!given.shape && given.rank > 0) throw bertcl::Error(name + " has a rank, but no shape");
    if (!given.data && given.bytes > 0) throw bertcl::Error(name + " has bytes, but no data");
    const std::vector<std::int64_t> shape(given.shape, given.shape + given.rank);
    const bertcl::Tensor tensor(static_cast<bertcl::ElementType>(given.type), shape,
                                {static_cast<const std::byte*>(given.data), given.bytes});
    if (!tensors.emplace(given.name, tensor).second) throw bertcl::Error("duplicate " + name);
  }
  return tensors;
}

bertcl::RunOptions options_of(const bertcl_run_options* options) {
  const bertcl_run_options given = bertcl::c::read_options(options);
  bertcl::RunOptions all;
  if (given.output_count > 0 && !given.outputs)
    throw bertcl::Error("options have an output_count, but no outputs");
  for (std::size_t i = 0; i < given.output_count; ++i) {
    if (!given.outputs[i])
      throw bertcl::Error("the name of output " + std::to_string(i) + " of the options is NULL");
    all.outputs.emplace_back(given.outputs[i]);
  }
  return all;
}

bertcl::SessionOptions options_of(const bertcl_session_options* options) {
  const bertcl_session_options given = bertcl::c::read_options(options);
  bertcl::SessionOptions all;
  if (given.device) all.device = given.device;
  all.precision = static_cast<bertcl::Precision>(given.precision);
  if (given.requests != 0) all.requests = given.requests;
  all.max_memory = given.max_memory;
  all.require_int8 = given.require_int8 != 0;
  all.allow_nonfinite = given.allow_nonfinite != 0;
  if (!given.pooling && (given.normalize != 0 || given.dimensions != 0))
    throw bertcl::Error("'normalize' and 'dimensions' need 'pooling'");
  if (given.pooling)
    all.pooling = bertcl::Pooling{given.pooling, false, given.normalize != 0, given.dimensions};
  return all;
}

bertcl_status load(const auto& model, const bertcl_session_options* options,
                   bertcl_session** session) {
  return guarded(
      [&] { *session = new bertcl_session{bertcl::Session::load(model, options_of(options))}; });
}

bertcl_results* results_of(bertcl::Tensors tensors) {
  auto results = std::make_unique<bertcl_results>();
  for (auto& [name, tensor] : tensors) results->outputs.emplace_back(name, std::move(tensor));
  return results.release();
}

}  // namespace

const char* bertcl_version(void) { return bertcl::version(); }

const char* bertcl_last_error(void) { return bertcl::c::last_error().c_str(); }

bertcl_status bertcl_session_load(const char* model, const bertcl_session_options* options,
                                  bertcl_session** session) {
  if (!model || !session) return refuse("model and session must not be NULL");
  *session = nullptr;
  return load(model, options, session);
}

bertcl_status bertcl_session_load_bytes(const void* bytes, size_t size,
                                        const bertcl_session_options* options,
                                        bertcl_session** session) {
  if (!bytes || !session) return refuse("bytes and session must not be NULL");
  *session = nullptr;
  bertcl::ModelBytes model;
  model.bytes = {static_cast<const std::byte*>(bytes), size};
  return load(model, options, session);
}

void bertcl_session_free(bertcl_session* session) { delete session; }

size_t bertcl_session_input_count(const bertcl_session* session) {
  return session ? session->session.info().inputs.size() : 0;
}

size_t bertcl_session_output_count(const bertcl_session* session) {
  return session ? session->session.info().outputs.size() : 0;
}

bertcl_status bertcl_session_input(const bertcl_session* session, size_t index,
                                   bertcl_tensor* tensor) {
  if (!session) return refuse("session must not be NULL");
  return guarded([&] { describe(session->session.info().inputs, index, "inputs", tensor); });
}

bertcl_status bertcl_session_output(const bertcl_session* session, size_t index,
                                    bertcl_tensor* tensor) {
  if (!session) return refuse("session must not be NULL");
  return guarded([&] { describe(session->session.info().outputs, index, "outputs", tensor); });
}

bertcl_status bertcl_session_info(const bertcl_session* session, bertcl_model_info* info) {
  if (!session) return refuse("session must not be NULL");
  const bertcl::ModelInfo& from = session->session.info();
  const bertcl_model_info all{sizeof(bertcl_model_info),
                              static_cast<std::int32_t>(from.task),
                              static_cast<std::int32_t>(from.precision),
                              from.int8,
                              from.takes_packed,
                              from.max_length,
                              from.vocab_size,
                              from.heads,
                              from.weight_bytes,
                              from.device.c_str()};
  return guarded([&] { write(all, info, "info"); });
}

bertcl_status bertcl_session_run_memory(const bertcl_session* session, int64_t batch,
                                        int64_t length, int64_t* bytes) {
  if (!session || !bytes) return refuse("session and bytes must not be NULL");
  return guarded([&] { *bytes = session->session.run_memory(batch, length); });
}

bertcl_status bertcl_session_run(bertcl_session* session, const bertcl_tensor* inputs, size_t count,
                                 const bertcl_run_options* options, bertcl_results** results) {
  if (!session || !results || (!inputs && count > 0))
    return refuse("session, inputs and results must not be NULL");
  *results = nullptr;
  return guarded([&] {
    *results = results_of(session->session.run(tensors_of(inputs, count), options_of(options)));
  });
}

bertcl_status bertcl_session_run_sequences(bertcl_session* session,
                                           const bertcl_sequences* sequences,
                                           const bertcl_run_options* options,
                                           bertcl_results** results) {
  if (!session || !results) return refuse("session and results must not be NULL");
  *results = nullptr;
  return guarded([&] {
    *results =
        results_of(session->session.run(bertcl::c::sequences_of(sequences), options_of(options)));
  });
}

size_t bertcl_results_count(const bertcl_results* results) {
  return results ? results->outputs.size() : 0;
}

bertcl_status bertcl_results_get(const bertcl_results* results, size_t index,
                                 bertcl_tensor* tensor) {
  if (!results) return refuse("results must not be NULL");
  return guarded([&] { give(*results, index, tensor); });
}

bertcl_status bertcl_results_find(const bertcl_results* results, const char* name,
                                  bertcl_tensor* tensor) {
  if (!results || !name) return refuse("results and name must not be NULL");
  return guarded([&] {
    std::string known;
    for (std::size_t i = 0; i < results->outputs.size(); ++i) {
      const std::string& own = results->outputs[i].first;
      if (own == name) return give(*results, i, tensor);
      known += (i > 0 ? ", " : "") + own;
    }
    throw bertcl::Error("the results have no output '" + std::string(name) + "'; they have " +
                        known);
  });
}

void bertcl_results_free(bertcl_results* results) { delete results; }
