// SPDX-License-Identifier: Apache-2.0
// Similarities of a vector with many are sums over columns, which compilers vectorize.
#include "tasks/scores/vector_similarity.hpp"

#include <algorithm>
#include <cmath>
#include <queue>
#include <stdexcept>
#include <tuple>

#include "support/ceil_div.hpp"
#include "support/did_you_mean.hpp"
#include "support/fail.hpp"

namespace bertcl::tasks {
namespace {

/// 1 for a vector of zeros, whose cosines are 0.
double norm_of(std::span<const float> vector) {
  double squares = 0.0;
  for (const float x : vector) squares += static_cast<double>(x) * x;
  return squares > 0 ? std::sqrt(squares) : 1.0;
}

/// The order of the best; a total one.
bool precedes(const SimilarPair& a, const SimilarPair& b) {
  if (std::isnan(a.score) != std::isnan(b.score)) return std::isnan(b.score);
  if (a.score > b.score || a.score < b.score) return a.score > b.score;
  return std::tie(a.first, a.second) < std::tie(b.first, b.second);
}

/// Adds term(x, y) for each x = vector[column], y = values[column][row] to sums[row].
template <std::size_t kRows, class Term>
void add_columns(const double* vector, std::size_t columns, const double* values, double* sums,
                 const Term& term) {
  for (std::size_t column = 0; column < columns; ++column) {
    const double x = vector[column];
    const double* ys = values + column * kRows;
    for (std::size_t row = 0; row < kRows; ++row) sums[row] += term(x, ys[row]);
  }
}

}  // namespace

const std::vector<std::string>& similarity_names() {
  static const std::vector<std::string> names = {"cosine", "dot", "euclidean", "manhattan"};
  return names;
}

Similarity similarity_named(const std::string& name) {
  const std::vector<std::string>& names = similarity_names();
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) fail("unknown similarity '{}'{}", name, suggestion(name, names));
  return static_cast<Similarity>(found - names.begin());
}

double cosine(std::span<const float> a, std::span<const float> b) {
  double product = 0.0, squares_a = 0.0, squares_b = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    squares_a += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    squares_b += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  const double squares = squares_a * squares_b;
  return squares > 0 ? product / std::sqrt(squares) : product;
}

ComparedVectors::ComparedVectors(Similarity function, std::span<const float> vectors,
                                 std::size_t dimensions)
    : function_(function),
      rows_(dimensions == 0 ? 0 : vectors.size() / dimensions),
      dimensions_(dimensions) {
  if (rows_ * dimensions != vectors.size())
    throw std::logic_error("vectors to compare are not [rows, dimensions]");
  values_.resize(round_up(rows_, kBlock) * dimensions_);
  for (std::size_t row = 0; row < rows_; ++row) {
    const std::vector<double> vector = prepared(vectors.subspan(row * dimensions_, dimensions_));
    double* values = values_.data() + row / kBlock * dimensions_ * kBlock + row % kBlock;
    for (std::size_t column = 0; column < dimensions_; ++column)
      values[column * kBlock] = vector[column];
  }
}

std::vector<double> ComparedVectors::prepared(std::span<const float> vector) const {
  const double scale = function_ == Similarity::cosine ? 1.0 / norm_of(vector) : 1.0;
  std::vector<double> values;
  values.reserve(vector.size());
  for (const float x : vector) values.push_back(x * scale);
  return values;
}

void ComparedVectors::compare(const double* prepared, std::size_t block,
                              Block& similarities) const {
  const double* values = values_.data() + block * dimensions_ * kBlock;
  double* sums = similarities.data();
  similarities.fill(0.0);
  const auto add = [&](const auto& term) {
    add_columns<kBlock>(prepared, dimensions_, values, sums, term);
  };
  switch (function_) {
    case Similarity::cosine:
    case Similarity::dot:
      return add([](double x, double y) { return x * y; });
    case Similarity::euclidean:
      add([](double x, double y) { return (x - y) * (x - y); });
      for (double& sum : similarities) sum = -std::sqrt(sum);
      return;
    case Similarity::manhattan:
      add([](double x, double y) { return std::abs(x - y); });
      for (double& sum : similarities) sum = -sum;
  }
}

std::vector<double> ComparedVectors::similarities(std::span<const float> vector) const {
  const std::vector<double> values = prepared(vector);
  std::vector<double> all(rows_);
  Block found;
  for (std::size_t begin = 0; begin < rows_; begin += kBlock) {
    compare(values.data(), begin / kBlock, found);
    std::copy_n(found.begin(), std::min(kBlock, rows_ - begin),
                all.begin() + static_cast<std::ptrdiff_t>(begin));
  }
  return all;
}

std::vector<SimilarPair> ComparedVectors::most_similar_pairs(std::size_t top_k) const {
  std::priority_queue<SimilarPair, std::vector<SimilarPair>, decltype(&precedes)> best(precedes);
  const auto offer = [&](const SimilarPair& pair) {
    if (best.size() == top_k) {
      if (top_k == 0 || !precedes(pair, best.top())) return;
      best.pop();
    }
    best.push(pair);
  };
  std::vector<double> vector(dimensions_);
  Block found;
  for (std::size_t begin = 0; begin < rows_; begin += kBlock) {
    const std::size_t end = std::min(begin + kBlock, rows_);
    for (std::size_t first = 0; first + 1 < end; ++first) {
      const double* values = values_.data() + first / kBlock * dimensions_ * kBlock;
      for (std::size_t column = 0; column < dimensions_; ++column)
        vector[column] = values[column * kBlock + first % kBlock];
      compare(vector.data(), begin / kBlock, found);
      for (std::size_t second = std::max(begin, first + 1); second < end; ++second)
        offer({first, second, static_cast<float>(found[second - begin])});
    }
  }
  std::vector<SimilarPair> pairs(best.size());
  for (auto pair = pairs.rbegin(); pair != pairs.rend(); ++pair) {
    *pair = best.top();
    best.pop();
  }
  return pairs;
}

}  // namespace bertcl::tasks
