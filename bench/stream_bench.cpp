// SPDX-License-Identifier: Apache-2.0
// Tokens per second over questions as they come: real lengths, batches as read, without padding.
//
//   build/bench/bench_stream model.onnx data.json vocab.txt --windows 200 --batch 8
//
// Of the batches that the windows of all questions make as read (384 tokens at most, stride 128),
// it takes some at equal distances, about --windows in all: data sets are ordered, and the
// first batches are not like the others. Prints JSON: the length of every window, and the seconds
// of each round over them. bench/compare gives the same lengths to other engines. With
// --keep-padding every window is padded to 384 tokens and the padding is computed as well, which is
// what an engine of one fixed shape does. BERTCL_DEVICE names the device.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "ir/input_role.hpp"
#include "squad/dataset.hpp"
#include "squad/features.hpp"
#include "support/ceil_div.hpp"
#include "support/stopwatch.hpp"
#include "tools/options/model_options.hpp"

namespace {

using namespace bertcl;

/// The windows under the names that the model gives its inputs, in rows of `seq` tokens.
runtime::Tensors inputs_of(const runtime::Session& session,
                           std::span<const squad::Feature* const> windows, std::size_t seq) {
  std::vector<std::int64_t> ids, mask, types;
  for (const squad::Feature* window : windows) {
    const std::size_t end = ids.size() + seq;
    ids.insert(ids.end(), window->input_ids.begin(), window->input_ids.end());
    mask.resize(ids.size(), 1);
    types.resize(ids.size() - window->length() + window->second, 0);
    types.resize(ids.size(), 1);
    for (auto* values : {&ids, &mask, &types}) values->resize(end, 0);
  }
  runtime::Tensors inputs;
  for (const auto& port : session.inputs()) {
    const ir::InputRole role = ir::role_of_input(port.name);
    inputs[port.name] =
        ir::Tensor::of<std::int64_t>({std::ssize(windows), static_cast<std::int64_t>(seq)},
                                     role == ir::InputRole::mask  ? mask
                                     : role == ir::InputRole::ids ? ids
                                                                  : types);
  }
  return inputs;
}

/// Windows of each batch of `size` that is taken, about `wanted` of `count` windows in all.
std::vector<std::vector<std::size_t>> choose_batches(std::size_t count, std::size_t size,
                                                     std::size_t wanted) {
  const std::size_t there = ceil_div(count, size);
  const std::size_t taken = std::min(there, std::max<std::size_t>(1, wanted / size));
  std::vector<std::vector<std::size_t>> batches;
  for (std::size_t i = 0; i < taken; ++i) {
    const std::size_t first = i * there / taken * size;
    batches.emplace_back(std::min(size, count - first));
    std::iota(batches.back().begin(), batches.back().end(), first);
  }
  return batches;
}

struct StreamOptions : tools::ModelOptions {
  std::string model, data, vocabulary;
  std::size_t windows = 200, batch = 8;
  int rounds = 3;
};

void run(const StreamOptions& options) {
  const squad::FeatureOptions windows_of;
  const squad::Dataset data = squad::load_dataset(options.data);
  const auto tokenizer = text::Tokenizer::from_file(options.vocabulary);
  const std::vector<squad::Feature> features = squad::make_features(data, tokenizer, windows_of);
  runtime::Session session = tools::load_model(options.model, options);

  std::vector<runtime::Tensors> batches;
  nlohmann::json result;
  for (const auto& windows : choose_batches(features.size(), options.batch, options.windows)) {
    std::vector<const squad::Feature*> chosen;
    std::size_t longest =
        options.keep_padding ? static_cast<std::size_t>(windows_of.max_seq_length) : 0;
    for (const std::size_t window : windows) {
      chosen.push_back(&features[window]);
      longest = std::max(longest, features[window].length());
      result["lengths"].push_back(features[window].length());
    }
    batches.push_back(inputs_of(session, chosen, longest));
  }
  for (int round = -1; round < options.rounds; ++round) {  // the first one warms up
    const Stopwatch clock;
    for (const runtime::Tensors& batch : batches) session.run(batch);
    const double seconds = clock.seconds();
    if (round >= 0) result["seconds"].push_back(seconds);
  }
  fmt::print("{}\n", result.dump());
}

}  // namespace

int main(int argc, char** argv) {
  StreamOptions options;
  CLI::App program("Tokens per second over questions as they come");
  program.add_option("MODEL", options.model)->required();
  program.add_option("DATA", options.data, "SQuAD file")->required();
  program.add_option("VOCABULARY", options.vocabulary)->required();
  program.add_option("--windows", options.windows, "About as many in all")->capture_default_str();
  program.add_option("--batch", options.batch)->capture_default_str();
  program.add_option("--rounds", options.rounds)->capture_default_str();
  program.add_flag("--keep-padding", options.keep_padding, "Compute windows of 384 tokens");
  tools::add_precision_option(program, options.precision,
                              "Float GEMMs, as `bertcl bench` has them");
  CLI11_PARSE(program, argc, argv);
  try {
    run(options);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_stream: {}\n", error.what());
    return 1;
  }
}
