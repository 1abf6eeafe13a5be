// SPDX-License-Identifier: Apache-2.0
// How similar two vectors are, by the functions of sentence-transformers, and which of many are
// most similar.
#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace bertcl::tasks {

/// The larger, the more similar; distances are negative.
enum class Similarity {
  cosine,     ///< of the angle, from -1 to 1 (util.cos_sim)
  dot,        ///< sum of products (util.dot_score)
  euclidean,  ///< minus the length of the difference (util.euclidean_sim)
  manhattan,  ///< minus the sum of absolute differences (util.manhattan_sim)
};

/// Names as similarity_fn_name of config_sentence_transformers.json spells them.
const std::vector<std::string>& similarity_names();

/// Throws Error with the names where `name` is none of them.
Similarity similarity_named(const std::string& name);

/// Cosine of the angle between two vectors of one length; 0 where one is all zeros, as for
/// sentence-transformers.
double cosine(std::span<const float> a, std::span<const float> b);

/// Two rows, first < second.
struct SimilarPair {
  std::size_t first = 0, second = 0;
  float score = 0.0f;  ///< rounded, so that equal vectors are as similar as any other two
};

/// Vectors prepared to be compared with others. A similarity does not depend on the vectors beside
/// these two, nor on which of both comes first, to the bit.
class ComparedVectors {
 public:
  /// `vectors` is [rows, dimensions]. Throws std::logic_error if it is not a whole number of rows.
  ComparedVectors(Similarity function, std::span<const float> vectors, std::size_t dimensions);

  std::size_t rows() const { return rows_; }

  /// [rows] of `vector` [dimensions] with each.
  std::vector<double> similarities(std::span<const float> vector) const;

  /// The `top_k` pairs of rows that are most similar, best first; equal ones by their rows, NaN
  /// last. Memory grows with `top_k`, not with the number of pairs.
  std::vector<SimilarPair> most_similar_pairs(std::size_t top_k) const;

 private:
  static constexpr std::size_t kBlock = 256;  // rows; their values stay in the L2 cache
  using Block = std::array<double, kBlock>;

  std::vector<double> prepared(std::span<const float> vector) const;
  /// Those with the rows of a block.
  void compare(const double* prepared, std::size_t block, Block& similarities) const;

  Similarity function_;
  std::size_t rows_, dimensions_;
  std::vector<double> values_;  // [blocks][dimensions][kBlock], of length 1 for cosines
};

}  // namespace bertcl::tasks
