// SPDX-License-Identifier: Apache-2.0
// Runs the float model over samples and collects the ranges of its tensors on the device.
#include "quant/calibration/calibrate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "bertcl/error.hpp"
#include "ir/input_role.hpp"
#include "quant/calibration/padded_batch.hpp"
#include "runtime/sequences.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"

namespace bertcl::quant {
namespace {

/// SHA-256 over the samples: of each its length, ids and types as 64-bit integers.
class SampleHash {
 public:
  SampleHash() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1)
      throw Error("SHA-256 is not available in libcrypto");
  }
  void add(const Sample& sample) {
    const std::vector<std::int64_t> length{std::ssize(sample.ids)};
    for (const auto* numbers : {&length, &sample.ids, &sample.token_type_ids})
      EVP_DigestUpdate(context_.get(), numbers->data(), numbers->size() * sizeof(std::int64_t));
  }
  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    EVP_DigestFinal_ex(context_.get(), digest.data(), &size);
    return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + size, ""));
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

/// Takes the tap off a session when calibration ends, however it ends.
class TapGuard {
 public:
  TapGuard(runtime::Session& session, runtime::TapFunction tap) : session_(session) {
    session_.set_tap(std::move(tap));
  }
  TapGuard(const TapGuard&) = delete;
  TapGuard& operator=(const TapGuard&) = delete;
  ~TapGuard() { session_.set_tap({}); }

 private:
  runtime::Session& session_;
};

/// Symbolic shapes of the tensors that a run will show. Throws Error naming one that it will not.
std::map<std::string, ir::Shape, std::less<>> observed_shapes(
    const runtime::Session& session, const std::set<std::string>& tensors) {
  std::map<std::string, ir::Shape, std::less<>> shapes;
  const plan::Plan& plan = session.plan();
  for (const plan::TapPoint& tap : plan.taps) shapes[tap.name] = plan.slots[tap.slot].type.shape;
  for (const std::string& tensor : tensors)
    if (!shapes.contains(tensor))
      fail(
          "tensor '{}' has no range: it does not depend on the inputs of the model, so "
          "no calibration sample reaches it; exclude the nodes that read it",
          tensor);
  return shapes;
}

}  // namespace

std::vector<std::size_t> spread(std::size_t total, std::size_t wanted, bool first) {
  if (wanted == 0 || wanted > total) wanted = total;
  std::vector<std::size_t> indices(wanted);
  for (std::size_t i = 0; i < wanted; ++i) indices[i] = first ? i : i * total / wanted;
  return indices;
}

runtime::Tensors inputs_of(const std::vector<ir::Port>& ports, std::span<const Sample> samples,
                           std::int64_t pad_token_id) {
  std::size_t longest = 0;
  for (const Sample& sample : samples) longest = std::max(longest, sample.ids.size());
  // Each value of a row by its sample and place.
  const auto filled = [&](const ir::Port& port, const auto& value, std::int64_t padding = 0) {
    const ir::Shape& shape = port.type.shape;
    const auto extent = [&](std::size_t axis, std::size_t free) {
      return shape.size() > axis && shape[axis].is_constant() ? shape[axis].constant()
                                                              : static_cast<std::int64_t>(free);
    };
    const std::int64_t batch = extent(0, samples.size());
    const std::int64_t seq = shape.size() > 1 ? extent(1, longest) : 1;
    if (shape.size() > 1 && static_cast<std::int64_t>(longest) > seq)
      fail(
          "a calibration sample has {} tokens, the model's input '{}' takes {}; make "
          "shorter windows ({})",
          longest, port.name, seq, option_name("max-seq-length", fmt::to_string(seq)));
    std::vector<std::int64_t> values;
    for (std::int64_t row = 0; row < batch; ++row) {
      const Sample& sample = samples[static_cast<std::size_t>(row) % samples.size()];
      for (std::size_t i = 0; i < static_cast<std::size_t>(seq); ++i)
        values.push_back(i < sample.ids.size() ? value(sample, i) : padding);
    }
    return ir::Tensor::of<std::int64_t>(shape.size() > 1 ? ir::Sizes{batch, seq} : ir::Sizes{batch},
                                        std::move(values));
  };
  runtime::Tensors inputs;
  std::string ids;
  for (const ir::Port& port : ports) {
    const std::string& name = port.name;
    const ir::InputRole role = ir::role_of_input(name);
    if (role == ir::InputRole::mask) {
      inputs[name] = filled(port, [](const Sample&, std::size_t) { return std::int64_t{1}; });
    } else if (role == ir::InputRole::token_types) {
      inputs[name] = filled(port, [](const Sample& s, std::size_t i) {
        return s.token_type_ids.empty() ? 0 : s.token_type_ids[i];
      });
    } else if (role == ir::InputRole::positions) {
      inputs[name] =
          filled(port, [](const Sample&, std::size_t i) { return static_cast<std::int64_t>(i); });
    } else if (role == ir::InputRole::example_ids) {
      inputs[name] = filled(port, [](const Sample&, std::size_t) { return std::int64_t{0}; });
    } else if (ids.empty()) {
      ids = name;
      inputs[name] = filled(
          port, [](const Sample& s, std::size_t i) { return s.ids[i]; }, pad_token_id);
    } else {
      fail(
          "calibration cannot fill model input '{}': '{}' takes the token ids; masks, "
          "token types and positions are supported, too",
          name, ids);
    }
  }
  if (ids.empty()) throw Error("the model has no input for token ids");
  return inputs;
}

Calibration calibrate(runtime::Session& session, const std::set<std::string>& tensors,
                      const Method& method, const MethodOptions& options,
                      const SampleSource& samples, int batch, const PassProgress& progress) {
  const BatchSymbols symbols = batch_symbols(session.inputs());
  Batches batches(session.inputs(), samples, batch, runtime::ignores_padding(session.plan()));
  std::map<std::string, std::unique_ptr<Observer>, std::less<>> observers;
  for (const std::string& tensor : tensors)
    observers[tensor] = method.observer(session.context(), options, tensor);
  const auto shapes = observed_shapes(session, tensors);
  Unpadder unpadder(session.context());
  std::vector<std::int64_t> lengths;  // of the batch that runs

  const TapGuard guard(session, [&](const std::string& name, const opencl::Buffer& buffer,
                                    ir::DType dtype, const ir::Sizes& shape) {
    const auto it = observers.find(name);
    if (it == observers.end()) return;
    if (dtype != ir::DType::f32)
      fail("tensor '{}' is {}; only f32 is calibrated", name, ir::name_of(dtype));
    if (lengths.size() == 1) {
      const ElementRange all{0, static_cast<std::size_t>(ir::element_count(shape))};
      it->second->observe(buffer, {&all, 1});
    } else {
      const auto real =
          unpadder.real_values(name, buffer, shapes.find(name)->second, symbols, lengths);
      it->second->observe(real.buffer, real.slices);
    }
  });

  Calibration result;
  SampleHash hash;
  for (auto group = batches.next(); !group.empty(); group = batches.next()) {
    lengths.clear();
    for (const Sample& sample : group) {
      if (sample.ids.empty() ||
          (!sample.token_type_ids.empty() && sample.token_type_ids.size() != sample.ids.size()))
        fail("calibration sample {} has {} ids and {} types, expected as many or no types",
             result.samples, sample.ids.size(), sample.token_type_ids.size());
      lengths.push_back(std::ssize(sample.ids));
      hash.add(sample);
      ++result.samples;
      result.tokens += lengths.back();
    }
    session.run(inputs_of(session.inputs(), group, session.plan().pad_token_id.value_or(0)));
    if (progress) progress(result.samples);
  }
  if (result.samples == 0)
    throw Error("no calibration samples: the data set is empty or none was selected");
  for (const auto& [tensor, observer] : observers) {
    result.ranges[tensor] = observer->range();
    if (observer->is_coarse()) result.coarse.push_back(tensor);
  }
  result.data_sha256 = hash.hex();
  return result;
}

}  // namespace bertcl::quant
