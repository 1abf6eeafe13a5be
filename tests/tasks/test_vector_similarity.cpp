// SPDX-License-Identifier: Apache-2.0
// Similarities of vectors against their formulas, and the best pairs against a sort of all.
#include "tasks/scores/vector_similarity.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include "tests/support/matchers.hpp"

namespace bertcl::tasks {
namespace {

std::vector<float> random_vectors(std::size_t count, std::mt19937& random) {
  std::normal_distribution<float> normal(0.1F, 1.0F);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

double expected(Similarity function, std::span<const float> a, std::span<const float> b) {
  double dot = 0, squares_a = 0, squares_b = 0, squares = 0, absolute = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    dot += x * y;
    squares_a += x * x;
    squares_b += y * y;
    squares += (x - y) * (x - y);
    absolute += std::abs(x - y);
  }
  switch (function) {
    case Similarity::cosine:
      return dot / std::sqrt(squares_a) / std::sqrt(squares_b);
    case Similarity::dot:
      return dot;
    case Similarity::euclidean:
      return -std::sqrt(squares);
    default:
      return -absolute;
  }
}

std::vector<Similarity> all_functions() {
  std::vector<Similarity> all;
  for (const std::string& name : similarity_names()) all.push_back(similarity_named(name));
  return all;
}

TEST(VectorSimilarity, FollowsTheFormulas) {
  std::mt19937 random(1);
  for (const Similarity function : all_functions())
    for (const std::size_t rows : {1u, 3u, 255u, 256u, 257u, 600u})
      for (const std::size_t dimensions : {1u, 7u, 64u}) {
        const auto vectors = random_vectors(rows * dimensions, random);
        const auto query = random_vectors(dimensions, random);
        const auto found = ComparedVectors(function, vectors, dimensions).similarities(query);
        ASSERT_EQ(found.size(), rows);
        for (std::size_t row = 0; row < rows; ++row) {
          const auto vector = std::span(vectors).subspan(row * dimensions, dimensions);
          ASSERT_NEAR(found[row], expected(function, query, vector), 1e-11)
              << "[" << rows << ", " << dimensions << "] row " << row;
        }
      }
}

TEST(VectorSimilarity, KnownValues) {
  const std::vector<float> vectors = {3, 4, 0, 0, -3, -4}, query = {3, 4};
  const auto of = [&](Similarity function) {
    return ComparedVectors(function, vectors, 2).similarities(query);
  };
  EXPECT_THAT(of(Similarity::cosine), ElementsAre(DoubleEq(1), 0, DoubleEq(-1)))
      << "0 with zeros, as sentence-transformers";
  EXPECT_THAT(of(Similarity::dot), ElementsAre(25, 0, -25));
  EXPECT_THAT(of(Similarity::euclidean), ElementsAre(0, -5, -10));
  EXPECT_THAT(of(Similarity::manhattan), ElementsAre(0, -7, -14));
  EXPECT_EQ(cosine(query, query), 1.0);
  EXPECT_EQ(cosine(query, std::vector<float>{0, 0}), 0.0);
  EXPECT_NEAR(cosine(query, std::vector<float>{4, 3}), 0.96, 1e-15);
}

TEST(VectorSimilarity, BestPairsAreThoseOfASortOfAll) {
  std::mt19937 random(2);
  for (const Similarity function : all_functions())
    for (const std::size_t rows : {1u, 2u, 100u, 256u, 257u, 523u}) {
      constexpr std::size_t dimensions = 5;
      auto vectors = random_vectors(rows * dimensions, random);
      // Every third one is another one again, so that many pairs are equally similar.
      for (std::size_t row = 3; row < rows; row += 3)
        std::copy_n(vectors.begin() + static_cast<std::ptrdiff_t>(row / 6 * dimensions), dimensions,
                    vectors.begin() + static_cast<std::ptrdiff_t>(row * dimensions));
      const ComparedVectors compared(function, vectors, dimensions);
      std::vector<SimilarPair> all;
      for (std::size_t i = 0; i < rows; ++i) {
        const auto found =
            compared.similarities(std::span(vectors).subspan(i * dimensions, dimensions));
        for (std::size_t k = i + 1; k < rows; ++k)
          all.push_back({i, k, static_cast<float>(found[k])});
      }
      std::stable_sort(all.begin(), all.end(), [](const SimilarPair& a, const SimilarPair& b) {
        return a.score > b.score;
      });
      for (const std::size_t most : {0u, 1u, 20u, 200'000u}) {
        const auto pairs = compared.most_similar_pairs(most);
        ASSERT_EQ(pairs.size(), std::min(most, all.size()));
        for (std::size_t i = 0; i < pairs.size(); ++i) {
          ASSERT_EQ(pairs[i].first, all[i].first) << rows << " rows, pair " << i;
          ASSERT_EQ(pairs[i].second, all[i].second) << rows << " rows, pair " << i;
          ASSERT_EQ(pairs[i].score, all[i].score) << rows << " rows, pair " << i;
        }
      }
    }
}

TEST(VectorSimilarity, NanComesLast) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> vectors = {nan, 1, 2, nan, 3};
  const auto pairs = ComparedVectors(Similarity::dot, vectors, 1).most_similar_pairs(20);
  ASSERT_EQ(pairs.size(), 10u);
  EXPECT_EQ(pairs[0].score, 6.0F);
  EXPECT_EQ(pairs[2].score, 2.0F);
  for (std::size_t i = 3; i < 10; ++i) EXPECT_TRUE(std::isnan(pairs[i].score));
  EXPECT_EQ(pairs[3].first, 0u);
  EXPECT_EQ(pairs[3].second, 1u);
  EXPECT_EQ(ComparedVectors(Similarity::dot, vectors, 1).most_similar_pairs(1)[0].score, 6.0F);
}

TEST(VectorSimilarity, WhatDoesNotFitIsRefused) {
  EXPECT_ERROR(
      HasSubstr("unknown similarity 'maxsim' (choose from cosine, dot, euclidean, manhattan)"),
      similarity_named("maxsim"));
  const std::vector<float> three = {1, 2, 3};
  EXPECT_THROW(ComparedVectors(Similarity::dot, three, 2), std::logic_error);
  EXPECT_EQ(ComparedVectors(Similarity::dot, {}, 0).rows(), 0u);
}

}  // namespace
}  // namespace bertcl::tasks
