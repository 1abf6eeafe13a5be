// SPDX-License-Identifier: Apache-2.0
// Features, n-best lists and answer texts against vectors of the reference Python pipeline.
#include <gtest/gtest.h>

#include <memory>

#include "squad/features.hpp"
#include "squad/predictions.hpp"
#include "tests/squad/support.hpp"

namespace bertcl::squad {
namespace {

using nlohmann::json;

struct GoldenExample {
  std::string context;
  Document document;
  std::vector<Feature> features;
};

class GoldenFeatures : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    BERTCL_NEEDS(GetParam());
    golden_ = read_shared(GetParam());
    ASSERT_EQ(golden_["examples"].size(), 26u);
    options_ = {golden_["max_seq_length"], golden_["doc_stride"], golden_["max_query_length"]};
  }

  std::unique_ptr<GoldenExample> make(const json& example) const {
    auto result = std::make_unique<GoldenExample>();
    for (const json& word : example["doc_tokens"]) {
      if (!result->context.empty()) result->context += ' ';
      result->context += word.get<std::string>();
    }
    result->document = make_document(result->context, bert_tokenizer());
    result->features = make_features(result->document, example["question"].get<std::string>(),
                                     bert_tokenizer(), options_);
    return result;
  }

  json golden_;
  FeatureOptions options_;
};

/// The feature in the form of the golden file: padded arrays and maps by position.
json padded(const Feature& feature, int max_seq_length) {
  json result = {{"input_ids", feature.input_ids},
                 {"input_mask", json::array()},
                 {"segment_ids", json::array()},
                 {"token_to_orig_map", json::object()},
                 {"token_is_max_context", json::object()}};
  for (std::size_t i = 0; i < static_cast<std::size_t>(max_seq_length); ++i) {
    const bool real = i < feature.length();
    if (!real) result["input_ids"].push_back(0);
    result["input_mask"].push_back(real ? 1 : 0);
    result["segment_ids"].push_back(real && i >= feature.doc_begin ? 1 : 0);
  }
  for (std::size_t i = 0; i < feature.doc_length(); ++i) {
    const std::string position = std::to_string(feature.doc_begin + i);
    result["token_to_orig_map"][position] = feature.token_to_orig[i];
    result["token_is_max_context"][position] = bool(feature.is_max_context[i]);
  }
  return result;
}

TEST_P(GoldenFeatures, FeaturesAreEqual) {
  for (const json& example : golden_["examples"]) {
    SCOPED_TRACE(example["id"].get<std::string>());
    const auto ours = make(example);
    ASSERT_EQ(ours->document.words.size(), example["doc_tokens"].size());
    ASSERT_EQ(ours->features.size(), example["features"].size());
    for (std::size_t i = 0; i < ours->features.size(); ++i) {
      const json feature = padded(ours->features[i], options_.max_seq_length);
      for (const auto& [key, value] : feature.items()) {
        EXPECT_EQ(value, example["features"][i][key]) << "window " << i << ", " << key;
      }
    }
  }
}

TEST_P(GoldenFeatures, NBestListsAreEqual) {
  for (const json& example : golden_["examples"]) {
    SCOPED_TRACE(example["id"].get<std::string>());
    const auto ours = make(example);
    std::vector<Logits> logits;
    for (const json& feature : example["features"]) {
      logits.push_back({feature["start_logits"].get<std::vector<float>>(),
                        feature["end_logits"].get<std::vector<float>>()});
    }
    ASSERT_EQ(logits.size(), ours->features.size());
    std::vector<WindowLogits> windows;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      windows.push_back({&ours->features[i], logits[i].start, logits[i].end});
    }
    const PredictionOptions options{.n_best_size = golden_["n_best_size"],
                                    .max_answer_length = golden_["max_answer_length"]};
    const Prediction prediction = predict(ours->document, windows, bert_tokenizer(), options);
    EXPECT_EQ(prediction.text, example["prediction"].get<std::string>());
    ASSERT_EQ(prediction.nbest.size(), example["nbest"].size());
    for (std::size_t i = 0; i < prediction.nbest.size(); ++i) {
      const NBestEntry& entry = prediction.nbest[i];
      const json& expected = example["nbest"][i];
      EXPECT_EQ(entry.text, expected["text"].get<std::string>()) << "entry " << i;
      EXPECT_EQ(entry.start_logit, expected["start_logit"].get<double>()) << "entry " << i;
      EXPECT_EQ(entry.end_logit, expected["end_logit"].get<double>()) << "entry " << i;
      EXPECT_NEAR(entry.probability, expected["probability"].get<double>(), 1e-14) << "entry " << i;
      if (entry.text == "empty" && !entry.span) continue;
      ASSERT_TRUE(entry.span.has_value());
      const auto [begin, end] = *entry.span;
      EXPECT_EQ(ours->context.substr(begin, end - begin), entry.text) << "entry " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sequence, GoldenFeatures,
                         testing::Values("data/golden/squad_features_seq384.json",
                                         "data/golden/squad_features_seq128.json"),
                         [](const auto& tested) { return tested.index == 0 ? "384" : "128"; });

TEST(GoldenFinalText, AllCasesAreEqual) {
  BERTCL_NEEDS("data/golden/get_final_text.json");
  const json cases = read_shared("data/golden/get_final_text.json");
  ASSERT_EQ(cases.size(), 120u);
  for (const json& c : cases) {
    EXPECT_EQ(
        get_final_text(c[0].get<std::string>(), c[1].get<std::string>(), bert_tokenizer().basic()),
        c[2].get<std::string>())
        << c;
  }
}

struct Count {
  const char* file;
  FeatureOptions options;
  std::size_t features;
  std::size_t tokens;  // 0: not recorded
};

class FeatureCounts : public testing::TestWithParam<Count> {};

TEST_P(FeatureCounts, AreThoseOfTheReference) {
  BERTCL_NEEDS(GetParam().file);
  const Dataset dataset = load_dataset(tests::shared_file(GetParam().file));
  const std::vector<Feature> features =
      make_features(dataset, bert_tokenizer(), GetParam().options);
  EXPECT_EQ(features.size(), GetParam().features);
  std::size_t tokens = 0;
  std::size_t bytes = 0;
  for (const Feature& feature : features) {
    tokens += feature.length();
    bytes += sizeof(Feature) + feature.input_ids.capacity() * 4 +
             feature.token_to_orig.capacity() * 4 + feature.is_max_context.capacity() / 8;
  }
  if (GetParam().tokens != 0) {
    EXPECT_EQ(tokens, GetParam().tokens);
  }
  EXPECT_LT(bytes, GetParam().features * 2048) << "features must stay small";
}

INSTANTIATE_TEST_SUITE_P(
    Reference, FeatureCounts,
    testing::Values(Count{"data/squad/dev-v1.1.json", {384, 128, 64}, 10833, 1933625},
                    Count{"data/squad/dev-v1.1.json", {128, 32, 64}, 32675, 0},
                    Count{"data/squad/dev-v1.1.json", {256, 64, 64}, 12547, 0},
                    Count{"data/squad/dev-v2.0.json", {384, 128, 64}, 12232, 0},
                    Count{"data/squad/dev-v2.0.json", {128, 32, 64}, 37650, 0},
                    Count{"data/squad/dev-v2.0.json", {256, 64, 64}, 14342, 0}),
    [](const auto& tested) {
      const bool v2 = std::string(tested.param.file).find("v2") != std::string::npos;
      return std::string(v2 ? "v2_" : "v1_") + std::to_string(tested.param.options.max_seq_length);
    });

}  // namespace
}  // namespace bertcl::squad
