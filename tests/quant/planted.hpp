// SPDX-License-Identifier: Apache-2.0
// A tiny BERT in a folder of its own, one of whose MatMuls is bad to quantize.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "quant/calibrated_model.hpp"
#include "tests/quant/tiny_bert.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::quant::tests {

inline const std::string kOutlier = "/bert/encoder/layer.0/output/dense/MatMul";

class PlantedTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.model = folder_ / "model.onnx";
    options_.output = folder_ / "q.onnx";
    Model::of(std::move(TinyBert().builder().model()), "bert").save(options_.model);
    std::mt19937 generator(3);
    for (const std::size_t length : {12, 7, 20, 9}) {
      Sample sample;
      for (std::size_t i = 0; i < length; ++i)
        sample.ids.push_back(static_cast<std::int64_t>(generator() % kTinyVocabulary));
      samples_.push_back(std::move(sample));
    }
  }

  /// Lets `edit` change the values of a weight.
  template <class Change>
  static void change(onnx::GraphProto& graph, const std::string& name, const Change& edit) {
    for (auto& tensor : *graph.mutable_initializer()) {
      if (tensor.name() != name) continue;
      std::vector<float> values(tensor.raw_data().size() / sizeof(float));
      std::memcpy(values.data(), tensor.raw_data().data(), tensor.raw_data().size());
      edit(values);
      tensor.set_raw_data(values.data(), values.size() * sizeof(float));
      return;
    }
    FAIL() << "no weight " << name;
  }

  /// Makes one channel of GELU's result so large that one scale for all of them leaves nothing of
  /// the others. The MatMul after it gives that channel little weight.
  void plant() {
    TinyBert bert;
    auto& graph = bert.builder().graph();
    change(graph, "bert.encoder.layer.0.intermediate.dense.bias",
           [](std::vector<float>& bias) { bias[3] = 500.0f; });
    change(graph, "onnx::MatMul_5", [](std::vector<float>& weight) {
      for (int j = 0; j < kTinyHidden; ++j) weight[3 * kTinyHidden + j] *= 1e-3f;
    });
    Model::of(std::move(bert.builder().model()), "bert").save(options_.model);
  }

  CalibratedModel calibrated() const {
    return {options_, [this, next = std::size_t{0}]() mutable -> std::optional<Sample> {
              if (next == samples_.size()) return std::nullopt;
              return samples_[next++];
            }};
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  const bertcl::tests::ScratchFolder folder_;
  Options options_;
  std::vector<Sample> samples_;
};

}  // namespace bertcl::quant::tests
