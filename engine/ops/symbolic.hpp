// SPDX-License-Identifier: Apache-2.0
// Elements of small integer tensors as sizes: the arithmetic that exported graphs do on shapes.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "ir/graph.hpp"

namespace bertcl::ops {

/// The elements of a tensor of rank 0 or 1; empty where they are not known.
using SymbolicElements = std::optional<std::vector<ir::Dim>>;

/// What is known about the elements of small tensors: as sizes of integers and booleans, as numbers
/// of any type. Symbols of the graph are sizes, so they are assumed positive; those that apply()
/// makes may be zero or, of Sub, negative.
class SymbolicValues {
 public:
  static constexpr std::int64_t kMaxElements = 64;

  /// The elements of a value of integers or booleans, or null. Those of small constants are always
  /// known.
  const std::vector<ir::Dim>* find(const ir::Value* value);
  void set(const ir::Value* value, std::vector<ir::Dim> elements);
  /// The tensor, of any type and rank, if all of its elements are numbers; or null.
  const ir::Tensor* tensor(const ir::Value* value);
  void set(const ir::Value* value, ir::Tensor numbers);
  /// The elements if all of them are numbers.
  std::optional<std::vector<std::int64_t>> constants(const ir::Value* value);

  /// The result of Add, Sub, Mul, Div, Min, Max, Equal, ... of two sizes: a size if it can be
  /// expressed as one, otherwise a fresh symbol, the same for the same operands. Empty for
  /// comparisons that depend on the run, and for other operators than Add, Sub and Mul where the
  /// result may be negative.
  std::optional<ir::Dim> apply(ir::Graph& graph, const std::string& op, const ir::Dim& a,
                               const ir::Dim& b);
  /// The extents of a tensor are not negative, also where Sub has made them.
  void assume_extents(const ir::Shape& shape);

 private:
  /// Lower bound of the size, 0 or 1; empty if it may be negative.
  std::optional<int> least(const ir::Dim& d) const;
  /// The signs that a - b may have, for any sizes of the symbols.
  struct Signs {
    int low = -1, high = 1;
  };
  Signs compare(const ir::Dim& a, const ir::Dim& b) const;
  /// x where `sum` is the symbol of x + b and `op` is Sub, or of x - b and Add.
  std::optional<ir::Dim> undo(const std::string& op, const ir::Dim& sum, const ir::Dim& b) const;

  std::map<const ir::Value*, std::vector<ir::Dim>> known_;
  std::map<const ir::Value*, ir::Tensor> numbers_;
  std::map<std::tuple<std::string, ir::Dim, ir::Dim>, ir::Dim> fresh_;
  std::map<std::string, std::optional<int>, std::less<>> least_;  // of symbols, where not 1
};

}  // namespace bertcl::ops
