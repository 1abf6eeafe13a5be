// SPDX-License-Identifier: Apache-2.0
// Arithmetic on sizes.
#include "ops/symbolic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "bertcl/error.hpp"

namespace bertcl::ops {
namespace {

/// Integer arithmetic wraps around, as it does where the operators are evaluated
/// (ops/definitions/binary.cpp).
template <class F>
ir::Dim wrapped(std::int64_t a, std::int64_t b, F f) {
  return ir::Dim(
      static_cast<std::int64_t>(f(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b))));
}
std::int64_t remainder(std::int64_t a, std::int64_t b) {  // of the sign of b
  if (b == -1) return 0;                                  // -2^63 / -1 overflows int64
  const std::int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

std::optional<ir::Dim> apply_numbers(const std::string& op, std::int64_t a, std::int64_t b) {
  if (op == "Add") return wrapped(a, b, std::plus());
  if (op == "Sub") return wrapped(a, b, std::minus());
  if (op == "Mul") return wrapped(a, b, std::multiplies());
  if (op == "Div" && b == -1) return wrapped(0, a, std::minus());
  if (op == "Div" && b != 0) return ir::Dim(a / b);
  if (op == "Mod" && b != 0) return ir::Dim(remainder(a, b));
  if (op == "Min") return ir::Dim(std::min(a, b));
  if (op == "Max") return ir::Dim(std::max(a, b));
  if (op == "Equal") return ir::Dim(a == b);
  if (op == "Less") return ir::Dim(a < b);
  if (op == "Greater") return ir::Dim(a > b);
  if (op == "LessOrEqual") return ir::Dim(a <= b);
  if (op == "GreaterOrEqual") return ir::Dim(a >= b);
  if (op == "And") return ir::Dim(a != 0 && b != 0);
  if (op == "Or") return ir::Dim(a != 0 || b != 0);
  return std::nullopt;
}

/// The product of the symbols alone; and what it is multiplied by.
ir::Dim bare(const ir::Dim& d) {
  ir::Dim product(1);
  for (const std::string& s : d.symbols()) product = product * ir::Dim::symbol(s);
  return product;
}
std::int64_t coefficient(const ir::Dim& d) { return ir::Dim::divide(d, bare(d))->constant(); }

/// SymbolicValues::least() of what `op` makes, from those of its operands.
std::optional<int> least_of(const std::string& op, std::optional<int> a, std::optional<int> b) {
  if (op == "Max") return std::max(a, b);  // one that is not negative is enough
  if (!a || !b) return std::nullopt;
  if (op == "Add") return std::max(a, b);
  if (op == "Min") return std::min(a, b);
  if (op == "Div" || op == "Mod") return 0;
  return std::nullopt;
}

}  // namespace

const std::vector<ir::Dim>* SymbolicValues::find(const ir::Value* value) {
  if (const auto it = known_.find(value); it != known_.end()) return &it->second;
  if (!value || ir::is_float(value->type.dtype) || value->type.shape.size() > 1) return nullptr;
  const ir::Tensor* numbers = tensor(value);
  if (!numbers) return nullptr;
  const auto ints = numbers->to_ints();
  const bool wraps = value->type.dtype == ir::DType::u64;  // above 2^63
  if (wraps && std::ranges::any_of(ints, [](std::int64_t n) { return n < 0; })) return nullptr;
  return &(known_[value] = std::vector<ir::Dim>(ints.begin(), ints.end()));
}

void SymbolicValues::set(const ir::Value* value, std::vector<ir::Dim> elements) {
  known_[value] = std::move(elements);
}

const ir::Tensor* SymbolicValues::tensor(const ir::Value* value) {
  if (!value) return nullptr;
  if (value->is_constant())
    return value->constant->size() <= kMaxElements ? &*value->constant : nullptr;
  if (const auto it = numbers_.find(value); it != numbers_.end()) return &it->second;
  const auto known = known_.find(value);
  const auto sizes = ir::constant_shape(value->type.shape);
  if (known == known_.end() || !sizes) return nullptr;
  const auto numbers = ir::constant_shape(known->second);
  if (!numbers) return nullptr;
  return &(numbers_[value] =
               ir::Tensor::of<std::int64_t>(*sizes, *numbers).converted(value->type.dtype));
}

void SymbolicValues::set(const ir::Value* value, ir::Tensor numbers) {
  numbers_[value] = std::move(numbers);
}

std::optional<std::vector<std::int64_t>> SymbolicValues::constants(const ir::Value* value) {
  const auto* elements = find(value);
  return elements ? ir::constant_shape(*elements) : std::nullopt;
}

std::optional<int> SymbolicValues::least(const ir::Dim& d) const {
  if (coefficient(d) <= 0) return d == ir::Dim(0) ? std::optional(0) : std::nullopt;
  int product = 1;
  for (const std::string& symbol : d.symbols()) {
    const auto it = least_.find(symbol);
    if (it == least_.end()) continue;
    if (!it->second) return std::nullopt;
    product *= *it->second;
  }
  return product;
}

SymbolicValues::Signs SymbolicValues::compare(const ir::Dim& a, const ir::Dim& b) const {
  if (a == b) return {0, 0};
  if (a.is_constant() && !b.is_constant()) {
    const Signs signs = compare(b, a);
    return {-signs.high, -signs.low};
  }
  const auto magnitude = least(bare(a));
  if (a.is_constant() || !b.is_constant() || !magnitude) return {};
  // 12*seq > 0 and -seq < 0, but 12*seq > 5 is not decided here.
  const std::int64_t number = b.constant();
  if (coefficient(a) > 0 && number <= *magnitude) return {number < *magnitude ? 1 : 0, 1};
  if (coefficient(a) < 0 && number >= -*magnitude) return {-1, number > -*magnitude ? -1 : 0};
  return {};
}

void SymbolicValues::assume_extents(const ir::Shape& shape) {
  // The factors of a product may both be negative.
  for (const ir::Dim& d : shape)
    if (const auto symbols = d.symbols(); symbols.size() == 1 && d == bare(d))
      if (const auto it = least_.find(*symbols.begin()); it != least_.end() && !it->second)
        it->second = 0;
}

std::optional<ir::Dim> SymbolicValues::undo(const std::string& op, const ir::Dim& sum,
                                            const ir::Dim& b) const {
  for (const auto& [made, symbol] : fresh_) {
    const auto& [how, left, right] = made;
    if (symbol != sum) continue;
    if (how == (op == "Sub" ? "Add" : "Sub") && right == b) return left;
    if (how == "Add" && op == "Sub" && left == b) return right;
  }
  return std::nullopt;
}

std::optional<ir::Dim> SymbolicValues::apply(ir::Graph& graph, const std::string& op,
                                             const ir::Dim& a, const ir::Dim& b) {
  if (a.is_constant() && b.is_constant()) return apply_numbers(op, a.constant(), b.constant());
  const bool comparison = op == "Equal" || op == "Less" || op == "Greater" || op == "LessOrEqual" ||
                          op == "GreaterOrEqual";
  const Signs signs = compare(a, b);
  if (comparison) {
    const auto result = apply_numbers(op, signs.low, 0);
    for (int sign = signs.low + 1; sign <= signs.high; ++sign)
      if (apply_numbers(op, sign, 0) != result) return std::nullopt;
    return result;
  }
  if (op == "Min" || op == "Max") {
    if (signs.high <= 0) return op == "Min" ? a : b;
    if (signs.low >= 0) return op == "Min" ? b : a;
  } else if (op == "Mul") {
    return a * b;
  } else if (op == "Div") {
    if (const auto quotient = ir::Dim::divide(a, b)) return quotient;
  } else if (op == "Add" || op == "Sub") {
    const ir::Dim zero(0);
    if (b == zero) return a;
    if (op == "Sub" && a == b) return zero;
    if (op == "Add" && a == zero) return b;
    // Like terms: 2*seq + 3*seq, 12*seq - seq.
    if (a.symbols() == b.symbols()) {
      std::int64_t sum = 0;
      if (op == "Add" ? __builtin_add_overflow(coefficient(a), coefficient(b), &sum)
                      : __builtin_sub_overflow(coefficient(a), coefficient(b), &sum))
        throw Error(fmt::format("the size {} {} {} overflows 64 bits", a.str(),
                                op == "Add" ? '+' : '-', b.str()));
      return ir::Dim(sum) * bare(a);
    }
    if (const auto undone = undo(op, a, b)) return undone;
    if (const auto undone = op == "Add" ? undo(op, b, a) : std::nullopt) return undone;
  } else if (op != "Mod") {
    return std::nullopt;
  }
  const std::optional<int> made = least_of(op, least(a), least(b));
  if (!made && op != "Add" && op != "Sub") return std::nullopt;
  const auto [it, fresh] = fresh_.try_emplace({op, a, b});
  if (!fresh) return it->second;
  it->second = graph.fresh_symbol();
  least_[it->second.str()] = made;
  return it->second;
}

}  // namespace bertcl::ops
