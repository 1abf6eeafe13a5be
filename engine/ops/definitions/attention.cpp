// SPDX-License-Identifier: Apache-2.0
// attention and attention_q: scaled dot-product attention (Vaswani et al., 2017) of padded or of
// packed sequences, with the quantization of scores and probabilities that a file asks for.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/fused.hpp"
#include "ops/operands.hpp"
#include "ops/precision.hpp"
#include "ops/quantization.hpp"

namespace bertcl::ops {
namespace {

/// Positions of what both ops have; `kNoOperand` for what only the other has.
struct Positions {
  std::size_t p_scale, seq_offsets, key_mask, bias, out_scale, out_zero_point;
  std::size_t scale[3], zero_point[3];  // of q, k and v
};
constexpr Positions kPositionsOfFloats = {operands::attention::p_scale,
                                          operands::attention::seq_offsets,
                                          operands::attention::key_mask,
                                          operands::attention::bias,
                                          kNoOperand,
                                          kNoOperand,
                                          {kNoOperand, kNoOperand, kNoOperand},
                                          {kNoOperand, kNoOperand, kNoOperand}};
constexpr Positions kPositionsOfBytes = {
    operands::attention_q::p_scale,
    operands::attention_q::seq_offsets,
    operands::attention_q::key_mask,
    operands::attention_q::bias,
    operands::attention_q::out_scale,
    operands::attention_q::out_zero_point,
    {operands::attention_q::q_scale, operands::attention_q::k_scale,
     operands::attention_q::v_scale},
    {operands::attention_q::q_zero_point, operands::attention_q::k_zero_point,
     operands::attention_q::v_zero_point}};

/// Heads of q that share one of k and v.
std::int64_t heads_per_key(const ir::Node& node) {
  const std::int64_t heads = node.int_attribute("heads");
  return heads / node.int_attribute("key_heads", heads);
}

/// The result has the rows of q, and its width, or where {offsets} say that the operands
/// are wider than their heads, the declared one.
template <const Positions& at>
std::vector<ir::Type> infer_heads(InferContext& context) {
  const ir::Node& node = context.node;
  ir::Shape shape = context.shape(0);
  if (shape.empty()) context.fail("q is a scalar");
  const std::int64_t heads = node.int_attribute("heads");
  const ir::Shape& declared = node.output()->type.shape;
  const bool in_place = node.has("offsets");
  if (in_place && !declared.empty()) shape.back() = declared.back();
  if (!shape.back().is_constant() || heads < 1 || shape.back().constant() % heads != 0)
    context.fail("cannot split {} columns into {} heads", shape.back().str(), heads);
  const std::int64_t key_heads = node.int_attribute("key_heads", heads);
  if (key_heads < 1 || heads % key_heads != 0)
    context.fail("{} heads cannot share {} key heads", heads, key_heads);
  const std::int64_t hidden = shape.back().constant();
  for (std::size_t i = 0; i < 3; ++i) {
    const ir::Shape& operand = context.shape(i);
    const std::int64_t first = in_place ? node.ints_attribute("offsets").at(i) : 0;
    const std::int64_t end = first + (i == 0 ? hidden : hidden / heads * key_heads);
    if (operand.empty() || !operand.back().is_constant() || first < 0 ||
        end > operand.back().constant())
      context.fail("{} does not contain columns {} to {}", context.described(i), first, end);
  }
  if (context.has(at.seq_offsets) != (shape.size() == 2) ||
      context.has(at.key_mask) != context.has(at.seq_offsets))
    context.fail(
        "packed tokens [tokens, hidden] require seq_offsets and key_mask; [batch, seq, hidden] "
        "allows neither");
  if (context.has(at.bias)) {
    const ir::Shape& bias = context.shape(at.bias);
    const bool of_sizes = bias.size() == 4 && bias[0] == ir::Dim(1) && bias[2] == bias[3] &&
                          (bias[1] == ir::Dim(1) || bias[1] == ir::Dim(heads));
    const bool of_tokens =
        shape.size() == 2 ? bias.size() == 3 && bias[0] == ir::Dim(heads) && bias[1] == shape[0]
                          : bias.size() == 4 && bias[0] == shape[0] && bias[1] == ir::Dim(heads) &&
                                bias[2] == shape[1] && bias[3] == shape[1];
    if (!of_sizes && !of_tokens)
      context.fail("{} is neither [1, {} or 1, seq, seq] nor of position_scores",
                   context.described(at.bias), heads);
  }
  if (node.has("window") && node.int_attribute("window") < 1)
    context.fail("a window of {}", node.int_attribute("window"));
  precision_of(node);  // throws if it is unknown
  return {{type_of_result(context, 0, at.out_scale), std::move(shape)}};
}

/// What is added to the score of a row and a key of a head, both places in the sequence that begins
/// at row `begin`; minus infinity outside of the window.
class Added {
 public:
  Added(const EvaluateContext& context, const Positions& at)
      : window_(context.node.int_attribute("window", 0)) {
    if (!context.has(at.bias)) return;
    bias_ = context.in(at.bias).to_doubles();
    const ir::Sizes& sizes = context.in(at.bias).shape();
    const std::int64_t last = sizes.back();
    if (sizes.size() == 3) {  // [heads, tokens, longest]: by key and row
      strides_ = {sizes[1] * last, last, 1, last};
    } else {
      strides_ = {sizes[1] == 1 ? 0 : last * last, 0, last, 1};
      if (sizes[0] != 1) strides_.token = sizes[1] * last;
    }
  }
  double operator()(std::int64_t begin, std::int64_t head, std::int64_t row,
                    std::int64_t key) const {
    if (window_ != 0 && std::abs(row - key) > window_)
      return -std::numeric_limits<double>::infinity();
    return bias_.empty() ? 0.0
                         : bias_.at(begin * strides_.token + head * strides_.head +
                                    row * strides_.row + key * strides_.key);
  }

 private:
  struct Strides {
    std::int64_t head, token, row, key;
  };
  std::int64_t window_;
  Strides strides_{};
  std::vector<double> bias_;
};

/// The rows of one sequence, and which of them count as keys.
struct Sequence {
  std::int64_t begin, end;
  std::vector<bool> keys;
};

std::vector<Sequence> sequences_of(const EvaluateContext& context, const Positions& at) {
  const bool packed = context.has(at.seq_offsets);
  const std::size_t operand = packed ? at.key_mask : +operands::attention::mask;
  const bool masked = packed ? context.node.int_attribute("masked", 0) != 0 : context.has(operand);
  const auto mask = masked ? context.in(operand).to_doubles() : std::vector<double>();
  const ir::Sizes& sizes = context.in(0).shape();
  if (!packed && masked && std::ssize(mask) != sizes.at(0) * sizes.at(1))
    context.fail("the mask is not [batch, seq]");
  const bool is_length = !packed && context.node.has("mask_is_length");
  std::vector<Sequence> all;
  for (const auto& [begin, end] : sequence_rows(context, at.seq_offsets)) {
    std::vector<bool> keys;
    for (std::int64_t row = begin; row < end; ++row) keys.push_back(!masked || mask.at(row) != 0.0);
    if (is_length) std::sort(keys.rbegin(), keys.rend());  // as many, at the start
    all.push_back({begin, end, keys});
  }
  return all;
}

/// Quantized scores, as the attributes ask for; the scores themselves where they ask for nothing.
double quantized_score(const ir::Node& node, double score) {
  if (!node.has("score_scale")) return score;
  const double scale = node.float_attribute("score_scale");
  const auto lowest = static_cast<double>(node.int_attribute("score_lowest"));
  const double q = std::clamp(std::nearbyint(score / scale), lowest, lowest + 255);
  return q * scale * node.float_attribute("score_factor");
}

/// The weights of the keys from their scores, and the number that the weighted sum is divided by.
struct Weights {
  std::vector<double> p;
  double divisor = 1.0;
};
Weights weights_of(const EvaluateContext& context, const Positions& at, std::vector<double> p) {
  const double largest = *std::ranges::max_element(p);
  if (largest == -std::numeric_limits<double>::infinity())  // no key is in the window
    return {std::vector<double>(p.size(), 0.0), 1.0};
  double total = 0.0;
  for (double& e : p) total += e = std::exp(e - largest);
  const bool unnormalized = context.node.int_attribute("unnormalized", 0) != 0;
  if (!unnormalized)
    for (double& e : p) e /= total;
  if (!context.has(at.p_scale)) return {std::move(p), unnormalized ? total : 1.0};
  const auto scale = static_cast<float>(context.in(at.p_scale).to_doubles().at(0));
  const ir::DType type = *ir::dtype_from_name(context.node.string_attribute("p_type"));
  double sum = 0.0;
  for (double& e : p) {
    e = static_cast<double>(quantize_scaled(static_cast<float>(e) / scale, 0, type)) * scale;
    sum += e;
  }
  return {std::move(p), unnormalized ? sum : 1.0};
}

template <const Positions& at>
std::vector<ir::Tensor> evaluate_heads(const EvaluateContext& context) {
  const ir::Node& node = context.node;
  const std::int64_t heads = node.int_attribute("heads");
  ir::Sizes sizes = context.result_sizes();
  const std::int64_t hidden = sizes.back(), size = hidden / heads;
  std::vector<float> numbers[3];
  std::int64_t stride[3], first[3];
  for (std::size_t i = 0; i < 3; ++i) {
    numbers[i] = real_numbers(context, i, at.scale[i], at.zero_point[i]);
    stride[i] = context.in(i).shape().back();
    first[i] = node.has("offsets") ? node.ints_attribute("offsets").at(i) : 0;
  }
  const std::int64_t shared = heads_per_key(node);
  const auto part = [&](std::size_t i, std::int64_t row, std::int64_t head) {
    if (i > 0) head /= shared;
    return numbers[i].data() + row * stride[i] + first[i] + head * size;
  };
  const double scale = node.float_attribute("scale");
  const Added added(context, at);
  std::vector<double> out(ir::element_count(sizes), 0.0);
  for (const Sequence& sequence : sequences_of(context, at)) {
    if (std::ranges::none_of(sequence.keys, [](bool key) { return key; }))
      continue;  // zeros, as the kernels write them
    for (std::int64_t row = sequence.begin; row < sequence.end; ++row)
      for (std::int64_t head = 0; head < heads; ++head) {
        std::vector<double> scores(sequence.keys.size(), -std::numeric_limits<double>::infinity());
        for (std::size_t key = 0; key < scores.size(); ++key) {
          if (!sequence.keys[key]) continue;
          const float *q = part(0, row, head),
                      *k = part(1, sequence.begin + static_cast<std::int64_t>(key), head);
          double sum = 0.0;
          for (std::int64_t d = 0; d < size; ++d) sum += static_cast<double>(q[d]) * k[d];
          scores[key] =
              quantized_score(node, scale * sum) +
              added(sequence.begin, head, row - sequence.begin, static_cast<std::int64_t>(key));
        }
        const Weights weights = weights_of(context, at, std::move(scores));
        double* y = out.data() + row * hidden + head * size;
        for (std::size_t key = 0; key < weights.p.size(); ++key) {
          const float* v = part(2, sequence.begin + static_cast<std::int64_t>(key), head);
          for (std::int64_t d = 0; d < size; ++d) y[d] += weights.p[key] * v[d];
        }
        for (std::int64_t d = 0; d < size; ++d) y[d] /= weights.divisor;
      }
  }
  return {result_of(context, 0, sizes, out, at.out_scale, at.out_zero_point)};
}

}  // namespace

std::vector<OpDef> attention_ops() {
  const OperandConstraint x{types::real_or_bf16, 'T'}, mask{TypeSet{ir::DType::u8}};
  const OperandConstraint q{types::bytes, 'Q'}, k{types::bytes, 'K'}, v{types::bytes, 'V'};
  return {
      own_op(operands::attention::op,
             {x, x, x, takes::all, takes::real, takes::bytes, takes::packed, mask, takes::real},
             operands::attention::names, infer_heads<kPositionsOfFloats>,
             evaluate_heads<kPositionsOfFloats>, {.is_attention = true}),
      own_op(operands::attention_q::op,
             {q, k, v, takes::all, takes::real, takes::real, q, takes::real, k, takes::real, v,
              takes::real, takes::bytes, takes::packed, mask, takes::real},
             operands::attention_q::names, infer_heads<kPositionsOfBytes>,
             evaluate_heads<kPositionsOfBytes>,
             {.is_attention = true, .out_scale = operands::attention_q::out_scale}),
  };
}

}  // namespace bertcl::ops
