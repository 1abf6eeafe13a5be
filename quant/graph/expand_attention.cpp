// SPDX-License-Identifier: Apache-2.0
// Writes fused attention in the plain operators that it is made of.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "ir/graph.hpp"
#include "onnx/attention.hpp"
#include "quant/graph/constants.hpp"
#include "quant/graph/expand_fused.hpp"
#include "quant/graph/graph_edit.hpp"
#include "quant/graph/graph_index.hpp"
#include "quant/graph/shared_constants.hpp"

namespace bertcl::quant {
namespace {

using onnx_io::MaskForm;

enum class Kind : std::uint8_t {
  packed,      ///< com.microsoft's Attention, with the weights of queries, keys and values
  multi_head,  ///< com.microsoft's MultiHeadAttention
  plain,       ///< ONNX's
};

std::optional<Kind> kind_of(const onnx::NodeProto& node) {
  if (is_op(node, "Attention")) return Kind::plain;
  if (node.domain() != "com.microsoft") return std::nullopt;
  if (node.op_type() == "Attention") return Kind::packed;
  if (node.op_type() == "MultiHeadAttention") return Kind::multi_head;
  return std::nullopt;
}

/// The modules of torch that make them.
constexpr std::array<const char*, 3> kParts{"query", "key", "value"};

std::string before_last_slash(const std::string& name) { return name.substr(0, name.rfind('/')); }

/// The module of an attention. Optimizers number their nodes and keep the names of results.
std::string module_of(const onnx::NodeProto& node) {
  for (const std::string& name : {node.name(), node.output(0)})
    if (name.find('/', 1) != std::string::npos) return before_last_slash(name);
  return label_of(node);
}

std::string input(const onnx::NodeProto& node, int i) {
  return i < node.input_size() ? node.input(i) : "";
}

/// Queries, keys and values of one attention, and its scores.
struct Heads {
  std::array<std::string, 3> parts;      // [batch, rows, heads * size] or, divided,
  bool divided = false;                  // [batch, heads, rows, size]
  std::array<std::int64_t, 3> widths{};  // heads * size or, divided, size
  // 0 if unknown. Those of keys may be fewer, each shared by several query heads.
  std::int64_t heads = 0, key_heads = 0;
  float scale = 0.0f;
  std::vector<std::string> terms;  // added to the scaled scores
  bool zero_empty_rows = false;    // a row whose keys are all masked, by -inf, gives 0
};

class Expander {
 public:
  explicit Expander(Model& model)
      : model_(model), types_(model.import()), index_(model.graph()), constants_(model, index_) {}

  Expanded expand() {
    Expanded done;
    for (int n = 0; n < index_.node_count(); ++n) {
      const auto& node = index_.node(n);
      const auto kind = kind_of(node);
      if (!kind) continue;
      if (std::string reason = why_unexpanded(node, *kind); !reason.empty()) {
        done.unexpanded.emplace(label_of(node), std::move(reason));
        continue;
      }
      ++done.count;
      nodes_ = &replaced_[n];
      module_ = module_of(node);
      finish(node, read(node, *kind));
    }
    replace_nodes(model_, std::move(replaced_));
    remove_unread(model_, unread_);
    return done;
  }

 private:
  const ir::Type* type_of(const std::string& tensor) const {
    const ir::Value* value = types_.find_value(tensor);
    return value ? &value->type : nullptr;
  }
  const ir::Shape& shape_of(const std::string& tensor) const { return type_of(tensor)->shape; }

  /// Empty where the node can be expanded. The importer has refused what is wrong.
  std::string why_unexpanded(const onnx::NodeProto& node, Kind kind) {
    for (int o = 1; o < node.output_size(); ++o)
      if (!index_.uses(node.output(o)).empty() || index_.read_elsewhere(node.output(o)))
        return "more than one of its results is read";
    const int past = kind == Kind::multi_head ? 6 : 4;
    for (int i = past; i < node.input_size(); ++i)
      if (!node.input(i).empty() && !(kind == Kind::packed && i == 5))
        return fmt::format("it has past keys or values (operand {})", i);
    if (float_attribute(node, "softcap", 0.0f) != 0.0f) return "it has attribute 'softcap'";
    for (const std::string& name : node.input())  // results of functions and of If bodies
      if (!name.empty() && !type_of(name) && !constants_.contains(name))
        return fmt::format("the type of operand '{}' is not known", name);
    for (int i = 0; i < (kind == Kind::packed ? 1 : 3); ++i) {
      const ir::Type* type = type_of(input(node, i));
      if (!type || type->dtype != ir::DType::f32) return "its operands are not f32";
      if (kind == Kind::plain ? type->shape.size() != shape_of(node.input(0)).size()
                              : type->shape.size() != 3)
        return "its keys and values are already split into heads";
      if (!type->shape.back().is_constant()) return "its hidden size is not constant";
      if (type->shape.size() == 3) continue;
      const ir::Dim &queries = shape_of(node.input(0))[1], &own = type->shape[1];
      const bool known = own.is_constant() && (own.constant() == 1 || queries.is_constant());
      if (!known && own != queries) return "its heads are not constant";
    }
    if (kind == Kind::plain) return "";
    for (const int i : {kind == Kind::packed ? 1 : 3, kind == Kind::packed ? 2 : 3})
      if (const std::string name = input(node, i); !name.empty()) try {
          if (!constants_.contains(name)) return fmt::format("operand '{}' is not constant", name);
          const ir::Tensor& value = constants_.value(name);
          if (value.dtype() != ir::DType::f32) return "its operands are not f32";
          const bool is_bias = kind == Kind::multi_head || i == 2;
          if (is_bias && value.shape() != ir::Sizes{columns_of(node, kind)})
            return fmt::format("bias '{}' does not have one value per column of the weight", name);
        } catch (const Error& e) {
          return e.what();
        }
    return "";
  }

  /// Of queries, keys and values together.
  std::int64_t columns_of(const onnx::NodeProto& node, Kind kind) const {
    if (kind == Kind::packed) return shape_of(node.input(1)).back().constant();
    std::int64_t sum = 0;
    for (int i = 0; i < 3; ++i) sum += shape_of(node.input(i)).back().constant();
    return sum;
  }

  Heads read(const onnx::NodeProto& node, Kind kind) {
    Heads h;
    h.heads = h.key_heads = int_attribute(node, "num_heads", 0);
    h.scale = float_attribute(node, "scale", 0.0f);
    if (kind == Kind::packed) {
      multiply(node, h);
    } else {
      h.parts = {node.input(0), node.input(1), node.input(2)};
      h.divided = shape_of(node.input(0)).size() == 4;
      for (std::size_t i = 0; i < 3; ++i) h.widths[i] = shape_of(h.parts[i]).back().constant();
      if (kind == Kind::plain) {
        h.heads = heads_of(node, 0, "q_num_heads");
        h.key_heads = heads_of(node, 1, "kv_num_heads");
      }
    }
    if (kind == Kind::multi_head && !input(node, 3).empty()) {
      std::int64_t at = 0;
      for (std::size_t i = 0; i < 3; ++i, at += h.widths[i - 1])
        h.parts[i] = biased(h.parts[i], node.input(3), i, at, h.widths[i]);
    }
    if (h.scale == 0.0f) {
      const std::int64_t size = h.divided ? h.widths[0] : h.widths[0] / h.heads;
      h.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(size)));
    }
    add_terms(node, kind, h);
    return h;
  }

  std::int64_t heads_of(const onnx::NodeProto& node, int i, std::string_view attribute) const {
    const ir::Shape& shape = shape_of(node.input(i));
    if (shape.size() == 3) return int_attribute(node, attribute, 0);
    return shape[1].is_constant() ? shape[1].constant() : 0;
  }

  /// Three MatMuls instead of one: each has the scale, the smoothing and the names that it has in
  /// the model before its optimization. The engine puts them together again.
  void multiply(const onnx::NodeProto& node, Heads& h) {
    const std::string& weights = node.input(1);
    const std::int64_t width = shape_of(weights).back().constant();
    h.widths.fill(width / 3);
    if (const auto* sizes = find_attribute(node, "qkv_hidden_sizes"))
      std::copy_n(sizes->ints().begin(), 3, h.widths.begin());
    std::int64_t at = 0;
    for (std::size_t i = 0; i < 3; ++i, at += h.widths[i - 1]) {
      h.parts[i] = emit("MatMul", kParts[i], {node.input(0), part_of(weights, i, at, h.widths[i])});
      if (const std::string bias = input(node, 2); !bias.empty())
        h.parts[i] = biased(h.parts[i], bias, i, at, h.widths[i]);
    }
  }

  std::string biased(const std::string& x, const std::string& bias, std::size_t part,
                     std::int64_t at, std::int64_t size) {
    return emit("Add", kParts[part], {x, part_of(bias, part, at, size)});
  }

  /// The columns of a constant for queries, keys or values, which nodes may share.
  const std::string& part_of(const std::string& constant, std::size_t part, std::int64_t at,
                             std::int64_t size) {
    std::string& name = slices_[{constant, at, size}];
    if (!name.empty()) return name;
    constants_.collect(constant, unread_);
    return name = model_.add(model_.fresh_name(constant + "_" + kParts[part]),
                             columns(constants_.value(constant), at, at + size));
  }

  /// The mask, the bias of the scores, and what hides later keys from earlier rows.
  void add_terms(const onnx::NodeProto& node, Kind kind, Heads& h) {
    const bool plain = kind == Kind::plain;
    const std::string mask = input(node, kind == Kind::multi_head ? 4 : 3);
    const std::size_t axis = h.divided ? 2 : 1;  // of rows
    const std::string &rows_of = node.input(0), &keys_of = node.input(kind == Kind::packed ? 0 : 1);
    h.zero_empty_rows = plain && !mask.empty();
    const auto hidden = static_cast<float>(h.zero_empty_rows ? -HUGE_VAL : onnx_io::kMaskedScore);
    const float filter = plain ? hidden : float_attribute(node, "mask_filter_value", -10000.0f);
    std::string term;
    if (!mask.empty() && plain) {
      const bool keeps = type_of(mask)->dtype == ir::DType::boolean;
      h.terms.push_back(keeps ? filtered(mask, filter) : as_float(mask));
    } else if (!mask.empty()) {
      const std::string pairs = extents_of(rows_of, axis) + " x " + extents_of(keys_of, axis);
      term = shared({"mask", mask, pairs, filter}, [&] {
        const auto form = onnx_io::mask_form(shape_of(mask), shape_of(rows_of)[0],
                                             shape_of(rows_of)[1], shape_of(keys_of)[1]);
        return filtered(kept(mask, *form, keys_of), filter);
      });
    }
    if (int_attribute(node, plain ? "is_causal" : "unidirectional", 0) != 0) {
      const std::string later =
          shared({"later", extents_of(rows_of, axis), extents_of(keys_of, axis), 0.0f}, [&] {
            const std::string row = emit("Reshape", "", {places(rows_of, axis), ints({-1, 1})});
            return emit("Less", "", {row, places(keys_of, axis)});
          });
      // In the place of what the mask gives, as ONNX Runtime does.
      const std::string seen = term.empty() ? scalar(0.0f) : term;
      term = shared({"seen", term, later, filter}, [&] {
        return emit("Where", "", {later, scalar(hidden), seen});
      });
    }
    if (!term.empty()) h.terms.push_back(term);
    if (const std::string bias = plain ? "" : input(node, 5); !bias.empty())
      h.terms.push_back(as_float(bias));
  }

  std::string extents_of(const std::string& tensor, std::size_t axis) const {
    return shape_of(tensor)[axis].str();
  }

  /// [batch, 1, rows or 1, keys]: true for the keys that a mask keeps.
  std::string kept(const std::string& mask, MaskForm form, const std::string& keys_of) {
    if (form == MaskForm::keys)
      return cast(emit("Reshape", "", {mask, ints({0, 1, 1, -1})}), onnx::TensorProto::BOOL);
    if (form == MaskForm::rows_and_keys) return cast(unsqueezed(mask), onnx::TensorProto::BOOL);
    const std::string ends =
        type_of(mask)->dtype == ir::DType::i64 ? mask : cast(mask, onnx::TensorProto::INT64);
    const std::string keys = places(keys_of, 1);
    if (form == MaskForm::ends)
      return emit("Less", "", {keys, emit("Reshape", "", {ends, ints({-1, 1, 1, 1})})});
    const std::string both = emit("Reshape", "", {ends, ints({2, -1, 1, 1, 1})});
    const std::string before_end = emit("Less", "", {keys, emit("Gather", "", {both, number(0)})});
    const std::string before_start =
        emit("Less", "", {keys, emit("Gather", "", {both, number(1)})});
    return emit("And", "", {before_end, emit("Not", "", {before_start})});
  }

  /// [batch, rows, keys] -> [batch, 1, rows, keys]
  std::string unsqueezed(const std::string& mask) {
    if (opset_of(model_.proto()) >= 13) return emit("Unsqueeze", "", {mask, ints({1})});
    std::string result = emit("Unsqueeze", "", {mask});
    set_attribute(nodes_->back(), "axes", std::vector<std::int64_t>{1});
    return result;
  }

  /// 0, 1, .. for an axis of a tensor.
  std::string places(const std::string& tensor, std::size_t axis) {
    return shared({"places", extents_of(tensor, axis), "", 0.0f}, [&] {
      const std::string extent = emit(
          "Gather", "", {emit("Shape", "", {tensor}), number(static_cast<std::int64_t>(axis))});
      return emit("Range", "", {number(0), extent, number(1)});
    });
  }

  /// 0 where `keep` is true, `filter` where it is not.
  std::string filtered(const std::string& keep, float filter) {
    return emit("Where", "", {keep, scalar(0.0f), scalar(filter)});
  }

  std::string cast(const std::string& x, std::int32_t type) {
    std::string result = emit("Cast", "", {x});
    set_attribute(nodes_->back(), "to", type);
    return result;
  }
  std::string as_float(const std::string& x) {
    return type_of(x)->dtype == ir::DType::f32 ? x : cast(x, onnx::TensorProto::FLOAT);
  }

  /// What several nodes share, made by the first of them.
  template <class Make>
  const std::string& shared(
      const std::tuple<std::string_view, std::string, std::string, float>& key, const Make& make) {
    if (const auto it = shared_.find(key); it != shared_.end()) return it->second;
    return shared_[key] = make();
  }

  /// Softmax and all around it, whose result is that of the node.
  void finish(const onnx::NodeProto& node, const Heads& h) {
    using Axes = std::vector<std::int64_t>;
    const bool shared = h.heads != 0 && h.key_heads != h.heads;  // one key head is broadcast
    const auto as_heads = [&](std::size_t i) {
      const bool keys = i == 1;
      const std::int64_t count = i == 0 ? h.heads : h.key_heads;
      std::string x = h.parts[i];
      if (!h.divided) {
        x = emit("Reshape", kParts[i], {x, ints({0, 0, count, h.widths[i] / count})});
        x = transposed(x, kParts[i], keys && !shared ? Axes{0, 2, 3, 1} : Axes{0, 2, 1, 3});
      }
      if (i > 0 && shared) {
        const std::int64_t size = h.divided ? h.widths[i] : h.widths[i] / count;
        x = emit("Unsqueeze", kParts[i], {x, ints({2})});
        x = emit("Expand", kParts[i], {x, ints({1, 1, h.heads / count, 1, 1})});
        x = emit("Reshape", kParts[i], {x, ints({0, h.heads, -1, size})});
      }
      return keys && (h.divided || shared) ? transposed(x, kParts[i], {0, 1, 3, 2}) : x;
    };
    const std::string q = as_heads(0), k = as_heads(1), v = as_heads(2);
    std::string scores = emit("Mul", "", {emit("MatMul", "", {q, k}), scalar(h.scale)});
    for (const std::string& term : h.terms) scores = emit("Add", "", {scores, term});
    std::string weights = emit("Softmax", "", {scores});
    set_attribute(nodes_->back(), "axis", -1);
    if (h.zero_empty_rows)
      weights = emit("Where", "", {emit("IsNaN", "", {weights}), scalar(0.0f), weights});
    std::string result = emit("MatMul", "", {weights, v});
    if (!h.divided) {
      result = transposed(result, "", {0, 2, 1, 3});
      emit("Reshape", "", {result, ints({0, 0, h.widths[2] / h.key_heads * h.heads})});
    }
    nodes_->back().set_output(0, node.output(0));
  }

  std::string transposed(const std::string& x, const std::string& part,
                         const std::vector<std::int64_t>& perm) {
    std::string result = emit("Transpose", part, {x});
    set_attribute(nodes_->back(), "perm", perm);
    return result;
  }

  /// Adds a node of the module, or of a part of it, before the next one. Returns its result.
  std::string emit(const std::string& op, const std::string& part,
                   const std::vector<std::string>& inputs) {
    const std::string name = module_ + (part.empty() ? "/" : "/" + part + "/") + op;
    nodes_->push_back(make_node(model_, op, name, inputs));
    return nodes_->back().output(0);
  }

  std::string ints(const std::vector<std::int64_t>& values) { return made_.ints(values); }
  std::string number(std::int64_t value) { return made_.number(value); }
  std::string scalar(float value) { return made_.scalar(value); }

  Model& model_;
  const ir::Graph types_;
  const GraphIndex index_;
  Constants constants_;
  std::map<int, std::vector<onnx::NodeProto>> replaced_;
  std::vector<onnx::NodeProto>* nodes_ = nullptr;  // in place of the node at hand
  std::string module_;                             // its
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, std::string> slices_;
  std::map<std::tuple<std::string_view, std::string, std::string, float>, std::string> shared_;
  SharedConstants made_{model_};
  Sources unread_;  // of weights and biases, if nobody else reads them
};

}  // namespace

Expanded expand_attention(Model& model) {
  const auto& nodes = model.graph().node();
  if (std::ranges::none_of(nodes, [](const auto& n) { return kind_of(n).has_value(); })) return {};
  return Expander(model).expand();
}

}  // namespace bertcl::quant
