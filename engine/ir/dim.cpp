// SPDX-License-Identifier: Apache-2.0
// Arithmetic and text form of symbolic sizes.
#include "ir/dim.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "bertcl/error.hpp"
#include "ir/checked.hpp"
#include "support/parse_number.hpp"

namespace bertcl::ir {

bool is_fresh_symbol(std::string_view name) {
  return name.size() > 1 && name[0] == 'n' &&
         name.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

Dim Dim::symbol(std::string name) {
  Dim d(1);
  d.symbols_.push_back(std::move(name));
  return d;
}

std::optional<Dim> Dim::parse(std::string_view text) {
  Dim d(1);
  while (true) {
    const auto star = text.find('*');
    const std::string_view factor = text.substr(0, star);
    if (factor.empty()) return std::nullopt;
    if (factor[0] == '-' || (factor[0] >= '0' && factor[0] <= '9')) {
      const auto n = parse_number<std::int64_t>(factor);
      if (!n || __builtin_mul_overflow(d.coefficient_, *n, &d.coefficient_)) return std::nullopt;
    } else {
      d.symbols_.emplace_back(factor);
    }
    if (star == std::string_view::npos) break;
    text.remove_prefix(star + 1);
  }
  std::ranges::sort(d.symbols_);
  return d;
}

std::int64_t Dim::evaluate(const Bindings& bindings) const {
  std::int64_t value = coefficient_;
  for (const std::string& s : symbols_) {
    const auto it = bindings.find(s);
    if (it == bindings.end())
      throw Error(fmt::format("the size '{}' in '{}' is not known at run time", s, str()));
    value = product(value, it->second, "a size");
  }
  return value;
}

std::string Dim::str() const {
  if (symbols_.empty()) return std::to_string(coefficient_);
  const std::string product = fmt::format("{}", fmt::join(symbols_, "*"));
  return coefficient_ == 1 ? product : fmt::format("{}*{}", coefficient_, product);
}

Dim operator*(const Dim& a, const Dim& b) {
  Dim d(product(a.coefficient_, b.coefficient_, "a size"));
  if (d.coefficient_ == 0) return d;
  d.symbols_.resize(a.symbols_.size() + b.symbols_.size());
  std::merge(a.symbols_.begin(), a.symbols_.end(), b.symbols_.begin(), b.symbols_.end(),
             d.symbols_.begin());
  return d;
}

std::optional<Dim> Dim::divide(const Dim& a, const Dim& b) {
  if (b.coefficient_ == 0) return std::nullopt;
  if (b.coefficient_ == -1 && a.coefficient_ == std::numeric_limits<std::int64_t>::min())
    return std::nullopt;
  if (a.coefficient_ % b.coefficient_ != 0) return std::nullopt;
  if (!std::includes(a.symbols_.begin(), a.symbols_.end(), b.symbols_.begin(), b.symbols_.end()))
    return std::nullopt;
  Dim d(a.coefficient_ / b.coefficient_);
  std::set_difference(a.symbols_.begin(), a.symbols_.end(), b.symbols_.begin(), b.symbols_.end(),
                      std::back_inserter(d.symbols_));
  return d;
}

Dim element_count(const Shape& shape) {
  if (std::ranges::find(shape, Dim(0)) != shape.end()) return 0;
  Dim n(1);
  for (const Dim& d : shape) n = n * d;
  return n;
}

std::string str(const Shape& shape) {
  std::vector<std::string> parts;
  for (const Dim& d : shape) parts.push_back(d.str());
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

std::optional<Shape> parse_shape(std::string_view text) {
  if (!text.starts_with('[') || !text.ends_with(']')) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  Shape shape;
  if (text.empty()) return shape;
  while (true) {
    const auto comma = text.find(", ");
    const auto dim = Dim::parse(text.substr(0, comma));
    if (!dim) return std::nullopt;
    shape.push_back(*dim);
    if (comma == std::string_view::npos) return shape;
    text.remove_prefix(comma + 2);
  }
}

std::vector<std::int64_t> evaluate(const Shape& shape, const Bindings& bindings) {
  std::vector<std::int64_t> sizes;
  for (const Dim& d : shape) sizes.push_back(d.evaluate(bindings));
  return sizes;
}

const std::string* unknown_symbol(std::span<const Dim> extents, const Symbols& known) {
  for (const Dim& d : extents)
    for (const std::string& symbol : d.symbols())
      if (!known.contains(symbol)) return &symbol;
  return nullptr;
}

std::optional<std::vector<std::int64_t>> constant_shape(const Shape& shape) {
  std::vector<std::int64_t> sizes;
  for (const Dim& d : shape) {
    if (!d.is_constant()) return std::nullopt;
    sizes.push_back(d.constant());
  }
  return sizes;
}

}  // namespace bertcl::ir
