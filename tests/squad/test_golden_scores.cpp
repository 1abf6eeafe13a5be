// SPDX-License-Identifier: Apache-2.0
// Published predictions of real systems must score as the official scripts score them.
#include <gtest/gtest.h>

#include <map>

#include "squad/dataset.hpp"
#include "squad/metrics.hpp"
#include "tests/squad/support.hpp"

namespace bertcl::squad {
namespace {

using nlohmann::json;

const char* const scores_file = "data/golden/scores_official_predictions.json";

struct System {
  const char* name;  // in the file of scores
  const char* file;
  const char* data;
};

Scores score(const System& system) {
  const Dataset dataset = load_dataset(tests::shared_file(system.data));
  const auto predictions =
      read_shared(std::string("data/golden/predictions_") + system.file).get<Predictions>();
  return dataset.version_2 ? evaluate_v2(dataset.questions, predictions)
                           : evaluate_v1(dataset.questions, predictions);
}

class OfficialScores : public testing::TestWithParam<System> {};

TEST_P(OfficialScores, AreEqualToTheLastDigit) {
  const System& system = GetParam();
  BERTCL_NEEDS(scores_file);
  BERTCL_NEEDS(system.data);
  BERTCL_NEEDS(std::string("data/golden/predictions_") + system.file);
  const bool v2 = std::string(system.data).find("v2.0") != std::string::npos;
  const json expected = read_shared(scores_file)[v2 ? "v2.0" : "v1.1"][system.name];
  ASSERT_FALSE(expected.empty());
  const Scores scores = score(system);
  EXPECT_TRUE(scores.missing.empty());
  std::map<std::string, double> ours;
  for (const auto& [key, value] : scores.official_metrics()) ours[key] = value;
  for (const auto& [key, value] : expected.items()) {
    ASSERT_TRUE(ours.contains(key)) << key;
    EXPECT_EQ(ours[key], value.get<double>()) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Systems, OfficialScores,
    testing::Values(
        System{"BERT (ensemble)", "1.1_BERT_ensemble__Google_AI_Language.json",
               "data/squad/dev-v1.1.json"},
        System{"r-net+ (ensemble)", "1.1_r-net__ensemble__Microsoft_Research_Asia.json",
               "data/squad/dev-v1.1.json"},
        System{"SLQA+ (ensemble)", "1.1_SLQA__ensemble__Alibaba_iDST_NLP.json",
               "data/squad/dev-v1.1.json"},
        System{"BERT (single)", "v2.0_BERT_single_model__Google_AI_Language.json",
               "data/squad/dev-v2.0.json"},
        System{"nlnet (single)", "v2.0_nlnet_single_model__Microsoft_Research_Asia.json",
               "data/squad/dev-v2.0.json"},
        System{"BiDAF+SA+ELMo",
               "v2.0_BiDAF__Self_Attention__ELMo_single_model__Allen_Institute_for_Artificial_"
               "Intelligence_modified_by_Stanford.json",
               "data/squad/dev-v2.0.json"}),
    [](const auto& tested) {
      std::string name;
      for (const char c : std::string(tested.param.name)) {
        if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
      }
      return name;
    });

struct Published {
  const char* file;
  double exact;
  double f1;
};

/// Printed to five digits next to the published predictions.
TEST(OfficialScoresToFiveDigits, AreEqual) {
  const char* const data = "data/squad/dev-v1.1.json";
  BERTCL_NEEDS(data);
  for (const auto& [file, exact, f1] :
       {Published{"1.1_Match-LSTM_with_Ans-Ptr_Boundary_Ensemble__Singapore_Management_"
                  "University.json",
                  67.63482, 76.75556},
        Published{"1.1_Logistic_Regression_Baseline_Stanford_University.json", 40.14191,
                  50.98154}}) {
    BERTCL_NEEDS(std::string("data/golden/predictions_") + file);
    const Scores scores = score({"", file, data});
    EXPECT_NEAR(scores.exact_match, exact, 5e-6) << file;
    EXPECT_NEAR(scores.f1, f1, 5e-6) << file;
  }
}

}  // namespace
}  // namespace bertcl::squad
