// SPDX-License-Identifier: Apache-2.0
// Tables of sizes in device memory.
#include "runtime/size_tables.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "opencl/launch/persistent_kernel.hpp"
#include "runtime/launch.hpp"
#include "runtime/value_memory.hpp"
#include "support/ceil_div.hpp"

namespace bertcl::runtime {
namespace {

void for_each_table(const plan::Plan& plan, const auto& action) {
  for (const plan::Step& step : plan.steps)
    for (const plan::Argument& a : step.arguments)
      if (const auto* table = std::get_if<plan::SizeTable>(&a)) action(step, table->values);
}

}  // namespace

SizeTables::SizeTables(const plan::Plan& plan) : plan_(plan) {
  const std::size_t align = std::max(4u, plan.context->info().base_align_bytes);
  std::vector<std::size_t> bytes;
  for_each_table(plan, [&](const plan::Step&, const auto& sizes) {
    offsets_.push_back(numbers_.size() * 4);
    bytes.push_back(std::max<std::size_t>(1, sizes.size()) * 4);
    numbers_.resize(round_up(offsets_.back() + bytes.back(), align) / 4);
  });
  if (bytes.empty()) return;
  const bool shares = views_may_overlap(plan);
  if (shares) shared_ = plan.context->allocate(numbers_.size() * 4);
  if (plan.persistent_kernel)
    address_ = opencl::addresses_of(*plan.context, std::array{&shared_})[0];
  for (std::size_t i = 0; i < bytes.size(); ++i)
    buffers_.push_back(shares ? shared_.view(offsets_[i], bytes[i])
                              : plan.context->allocate(bytes[i]));
}

void SizeTables::write(const ir::Bindings& sizes) {
  std::size_t table = 0;
  for_each_table(plan_, [&](const plan::Step& step, const auto& values) {
    std::int32_t* to = &numbers_[offsets_[table++] / 4];
    for (const plan::SizeExpr& size : values) *to++ = as_int(size.evaluate(sizes), step);
  });
  const auto bytes = std::as_bytes(std::span(numbers_));
  if (shared_) return shared_.write_async(bytes);
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    buffers_[i].write_async(bytes.subspan(offsets_[i], buffers_[i].size()));
}

}  // namespace bertcl::runtime
