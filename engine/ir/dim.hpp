// SPDX-License-Identifier: Apache-2.0
// Symbolic sizes: a number times a product of symbols, such as 12*batch*seq.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bertcl::ir {

/// Sizes that a run gives to symbols: {"batch": 8, "seq": 128}.
using Bindings = std::map<std::string, std::int64_t, std::less<>>;

using Symbols = std::set<std::string>;

/// True for names as Graph::fresh_symbol() makes them: "n" and a number.
bool is_fresh_symbol(std::string_view name);

/// One extent of a shape: coefficient * product of symbols. Transformer graphs only multiply and
/// divide their extents (heads * head_size, batch * seq); type inference gives anything else a
/// fresh symbol.
class Dim {
 public:
  Dim(std::int64_t value = 0) : coefficient_(value) {}  // NOLINT: a number is a Dim
  static Dim symbol(std::string name);
  /// Reads the text form "12*batch*seq"; empty if it is not one.
  static std::optional<Dim> parse(std::string_view text);

  bool is_constant() const { return symbols_.empty(); }
  /// The number; only meaningful if is_constant().
  std::int64_t constant() const { return coefficient_; }
  const std::vector<std::string>& symbols() const { return symbols_; }

  /// The size under the given bindings. Throws bertcl::Error naming a symbol that has none.
  std::int64_t evaluate(const Bindings& bindings) const;
  std::string str() const;

  friend Dim operator*(const Dim& a, const Dim& b);
  /// a / b where it is exact, otherwise empty.
  static std::optional<Dim> divide(const Dim& a, const Dim& b);

  friend bool operator==(const Dim&, const Dim&) = default;
  friend auto operator<=>(const Dim&, const Dim&) = default;

 private:
  std::int64_t coefficient_;
  std::vector<std::string> symbols_;  // sorted; a square is a repeated name
};

using Shape = std::vector<Dim>;

/// Product of all extents; 1 for a scalar.
Dim element_count(const Shape& shape);
/// Text form "[batch, seq, 768]".
std::string str(const Shape& shape);
/// The shape of such a text; empty if it is none.
std::optional<Shape> parse_shape(std::string_view text);
/// Every extent evaluated to a number.
std::vector<std::int64_t> evaluate(const Shape& shape, const Bindings& bindings);
/// The first symbol of these extents that is not one of `known`; null if there is none.
const std::string* unknown_symbol(std::span<const Dim> extents, const Symbols& known);
/// The shape as numbers if no symbol occurs in it.
std::optional<std::vector<std::int64_t>> constant_shape(const Shape& shape);

}  // namespace bertcl::ir
