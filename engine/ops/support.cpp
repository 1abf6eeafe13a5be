// SPDX-License-Identifier: Apache-2.0
// Broadcasting, strided copies and the movement of symbolic elements.
#include "ops/support.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "ir/checked.hpp"

namespace bertcl::ops {
namespace {

/// True if both sizes occur in the shape of one input: the file means them to differ.
bool told_apart(const ir::Graph& graph, const ir::Dim& a, const ir::Dim& b) {
  return std::ranges::any_of(graph.inputs(), [&](const ir::Value* in) {
    const ir::Dim all = ir::element_count(in->type.shape);
    const auto has = [&](const ir::Dim& d) {
      return std::ranges::all_of(d.symbols(), [&](const std::string& s) {
        return std::ranges::count(all.symbols(), s) > 0;
      });
    };
    return has(a) && has(b);
  });
}

/// The extent two equal extents have, preferring what is known better; empty if they differ. Where
/// only the run can tell, the graph notes that they must be equal.
std::optional<ir::Dim> unite(const InferContext& context, const ir::Dim& a, const ir::Dim& b) {
  if (a == b) return a;
  if (a.is_constant() && b.is_constant()) return std::nullopt;
  if (is_unknown(context.graph, b)) return a;
  if (is_unknown(context.graph, a)) return b;
  if (!a.is_constant() && !b.is_constant() && told_apart(context.graph, a, b)) return std::nullopt;
  context.graph.assume_equal(a, b);
  return b.is_constant() ? b : a;
}

template <class T>
void copy_strided(const std::byte* in, std::byte* out, const ir::Sizes& sizes,
                  const ir::Sizes& strides, std::int64_t base) {
  std::int64_t n = 0;
  walk<1>(sizes, {strides}, [&](const auto& offset) {
    std::memcpy(out + n++ * static_cast<std::int64_t>(sizeof(T)),
                in + (base + offset[0]) * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  });
}

}  // namespace

bool is_unknown(const ir::Graph& graph, const ir::Dim& d) {
  return d.symbols().size() == 1 && ir::is_fresh_symbol(d.symbols()[0]) &&
         std::ranges::none_of(graph.inputs(), [&](const ir::Value* in) {
           const auto symbols = ir::element_count(in->type.shape).symbols();
           return std::ranges::find(symbols, d.symbols()[0]) != symbols.end();
         });
}

ir::Shape broadcast(const InferContext& context, const ir::Shape& a, const ir::Shape& b) {
  ir::Shape out(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const ir::Dim da = i < a.size() ? a[a.size() - 1 - i] : ir::Dim(1);
    const ir::Dim db = i < b.size() ? b[b.size() - 1 - i] : ir::Dim(1);
    ir::Dim& d = out[out.size() - 1 - i];
    if (da == ir::Dim(1)) {
      d = db;
    } else if (db == ir::Dim(1)) {
      d = da;
    } else if (const auto united = unite(context, da, db)) {
      d = *united;
    } else {
      context.fail("shapes {} and {} cannot be broadcast: {} against {}", ir::str(a), ir::str(b),
                   da.str(), db.str());
    }
  }
  return out;
}

ir::Sizes broadcast(const EvaluateContext& context, const ir::Sizes& a, const ir::Sizes& b) {
  ir::Sizes out(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t da = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t db = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (da != db && da != 1 && db != 1)
      context.fail("extents {} and {} cannot be broadcast", da, db);
    out[out.size() - 1 - i] = da == 1 ? db : da;
  }
  return out;
}

ir::Dim same_extent(const InferContext& context, const ir::Dim& a, const ir::Dim& b,
                    std::string_view what) {
  if (const auto united = unite(context, a, b)) return *united;
  context.fail("{} differs: {} against {}", what, a.str(), b.str());
}

std::optional<ir::Dim> slice_reach(std::int64_t first, std::int64_t step, const ir::Dim& count) {
  if (!count.is_constant()) return first == 0 && step == 1 ? std::optional(count) : std::nullopt;
  if (count == ir::Dim(0)) return ir::Dim(0);
  return first < 0 ? ir::Dim(-first) : ir::Dim(first + (count.constant() - 1) * step + 1);
}

ir::Sizes dense_strides(const ir::Sizes& sizes) {
  ir::Sizes strides(sizes.size());
  std::int64_t step = 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    strides[d] = step;
    step = ir::product(step, sizes[d], "a tensor");
  }
  return strides;
}

ir::Sizes broadcast_strides(const ir::Sizes& from, const ir::Sizes& to) {
  const ir::Sizes dense = dense_strides(from);
  ir::Sizes strides(to.size(), 0);
  const std::size_t lead = to.size() - from.size();
  for (std::size_t d = 0; d < from.size(); ++d)
    if (from[d] != 1) strides[lead + d] = dense[d];
  return strides;
}

ir::Tensor gather_strided(const ir::Tensor& in, const ir::Sizes& sizes, const ir::Sizes& strides,
                          std::int64_t base) {
  ir::Tensor out = ir::Tensor::zeros(in.dtype(), sizes);
  std::byte* target = out.mutable_bytes().data();
  const std::byte* source = in.bytes().data();
  switch (ir::size_of(in.dtype())) {
    case 1:
      copy_strided<std::uint8_t>(source, target, sizes, strides, base);
      break;
    case 2:
      copy_strided<std::uint16_t>(source, target, sizes, strides, base);
      break;
    case 4:
      copy_strided<std::uint32_t>(source, target, sizes, strides, base);
      break;
    default:
      copy_strided<std::uint64_t>(source, target, sizes, strides, base);
  }
  return out;
}

std::vector<SymbolicElements> move_elements(InferContext& context, unsigned data_mask) {
  const ir::Node& node = context.node;
  const std::vector<SymbolicElements> unknown(node.outputs.size());
  for (const ir::Value* out : node.outputs)
    if (out->type.shape.size() > 1 || !ir::constant_shape(out->type.shape)) return unknown;

  std::vector<ir::Dim> pool;  // element number -> size
  std::vector<ir::Tensor> tensors(node.inputs.size());
  std::vector<const ir::Tensor*> inputs(node.inputs.size(), nullptr);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ir::Value* in = node.inputs[i];
    if (!in) continue;
    const auto* elements = context.values.find(in);
    const auto sizes = ir::constant_shape(in->type.shape);
    if (!elements || !sizes ||
        static_cast<std::int64_t>(elements->size()) != ir::element_count(*sizes))
      return unknown;
    std::vector<std::int64_t> numbers;
    if (i < 32 && (data_mask >> i & 1u) == 0) {
      const auto constants = ir::constant_shape(*elements);
      if (!constants) return unknown;
      numbers = *constants;
    } else {
      for (const ir::Dim& d : *elements) {
        numbers.push_back(std::ssize(pool));
        pool.push_back(d);
      }
    }
    tensors[i] = ir::Tensor::of<std::int64_t>(*sizes, std::move(numbers));
    inputs[i] = &tensors[i];
  }
  const ir::Bindings no_symbols;
  const auto moved = get(node).evaluate({node, std::move(inputs), no_symbols});
  std::vector<SymbolicElements> results;
  for (const ir::Tensor& t : moved) {
    std::vector<ir::Dim> elements;
    for (const std::int64_t n : t.to_ints()) elements.push_back(pool.at(n));
    results.emplace_back(std::move(elements));
  }
  return results;
}

std::vector<std::int64_t> all_axes(const ir::Node& node) {
  std::vector<std::int64_t> axes(node.inputs.at(0)->type.shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

std::vector<ir::Type> infer_same(InferContext& context) {
  return std::vector<ir::Type>(context.node.outputs.size(), context.type(0));
}

}  // namespace bertcl::ops
