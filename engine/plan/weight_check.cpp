// SPDX-License-Identifier: Apache-2.0
// Finds float constants of a plan that hold NaN or infinity, and names them.
#include "plan/weight_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "bertcl/error.hpp"
#include "kernels/bind.hpp"
#include "kernels/contracts/observe.hpp"
#include "kernels/shared_numbers.hpp"
#include "opencl/queue.hpp"
#include "support/ceil_div.hpp"
#include "support/option_name.hpp"

namespace bertcl::plan {
namespace {

constexpr std::int64_t kSmall = 4096;     // elements
constexpr std::int32_t kChunk = 1 << 16;  // elements of a work-item
constexpr std::uint8_t kNone = 0x7f;      // each byte of an index that is none

bool is_looked_at(const ir::Tensor& tensor) {
  return tensor.dtype() == ir::DType::f32 || tensor.dtype() == ir::DType::f16 ||
         tensor.dtype() == ir::DType::bf16;
}

std::int32_t bits_of_infinity(ir::DType type) {
  return type == ir::DType::f32 ? 0x7f800000 : type == ir::DType::f16 ? 0x7c00 : 0x7f80;
}

std::string of(const std::string& constant) { return "the constant '" + constant + "'"; }

}  // namespace

void WeightCheck::fail(const std::string& name, const ir::Sizes& shape, bool is_weight,
                       std::int64_t index) const {
  throw Error(
      fmt::format(
          "{} [{}] holds NaN{} at element {}: the file is damaged or training diverged{}", name,
          fmt::join(shape, ", "), is_weight ? " or infinity" : "", index,
          has_option_ ? fmt::format(" ({} runs it anyway)", option_name("allow-nonfinite")) : ""),
      ErrorCode::invalid_file);
}

WeightCheck::WeightCheck(const ir::Graph& graph, bool has_option) : has_option_(has_option) {
  for (const ir::Value* value : graph.constants()) {
    const ir::Tensor& tensor = *value->constant;
    if (!is_looked_at(tensor)) continue;
    for (const ir::Tensor& part : tensor.parts())
      names_[{part.bytes().data(), part.bytes().size()}] = value->name;
    if (tensor.size() > kSmall) continue;
    const std::vector<double> values = tensor.to_doubles();
    const auto nan = std::ranges::find_if(values, [](double x) { return std::isnan(x); });
    if (nan != values.end()) fail(of(value->name), tensor.shape(), false, nan - values.begin());
  }
}

void WeightCheck::begin(opencl::Context& context, std::size_t tensors) {
  context_ = &context;
  kernel_ = context.kernel("find_nonfinite", "find_nonfinite");
  found_ = context.allocate(std::max<std::size_t>(tensors, 1) * sizeof(std::int32_t));
  found_.fill(kNone);
}

void WeightCheck::queue(const opencl::Buffer& data, const ir::Tensor& tensor, bool is_weight,
                        const std::string& reader) {
  if (!is_looked_at(tensor) || tensor.size() <= kSmall || tensor.size() > kernels::kMaxElements)
    return;
  const auto name = names_.find({tensor.bytes().data(), tensor.bytes().size()});
  kernels::set(kernel_, kernels::FindNonfinite<opencl::KernelArgument>{
                            .words = data,
                            .wide = tensor.dtype() == ir::DType::f32 ? 1 : 0,
                            .count = static_cast<std::int32_t>(tensor.size()),
                            .least = bits_of_infinity(tensor.dtype()) + (is_weight ? 0 : 1),
                            .found = found_,
                            .number = static_cast<std::int32_t>(queued_.size()),
                            .chunk = kChunk});
  queued_.push_back({name == names_.end() ? "a constant of " + reader : of(name->second),
                     tensor.shape(), is_weight});
  const auto items = static_cast<std::size_t>(ceil_div(tensor.size(), kChunk));
  context_->queue().launch_items(kernel_, {items, 1, 1}, "check");
}

void WeightCheck::finish() {
  if (queued_.empty()) return;
  const std::vector<std::int32_t> found = found_.download<std::int32_t>();
  for (std::size_t i = 0; i < queued_.size(); ++i)
    if (found[i] != 0x01010101 * kNone)
      fail(queued_[i].name, queued_[i].shape, queued_[i].is_weight, found[i]);
}

}  // namespace bertcl::plan
