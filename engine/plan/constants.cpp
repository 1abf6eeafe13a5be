// SPDX-License-Identifier: Apache-2.0
// The constants of a plan: uploaded, or made on the device by kernels that prepack them.
#include "plan/constants.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "kernels/contracts.hpp"
#include "opencl/queue.hpp"
#include "plan/split_k.hpp"

namespace bertcl::plan {
namespace {

// Of weights that wait to be prepacked. On a CPU their pages of the file take memory until they are
// released, elsewhere their copies do.
constexpr std::size_t kQueuedBytes = 64 << 20;

opencl::Buffer hold(opencl::Context& context, const ir::Tensor& tensor) {
  return context.wrap_host_memory(tensor.bytes(), ir::size_of(tensor.dtype()),
                                  std::make_shared<const ir::Tensor>(tensor));
}

}  // namespace

Constant Constants::constant(opencl::Buffer buffer) {
  plan_.constants.push_back(std::move(buffer));
  return {static_cast<int>(plan_.constants.size()) - 1};
}

Constant Constants::constant(const ir::Tensor& tensor, const ir::Node* node) {
  const std::span bytes = tensor.bytes();
  const auto [it, added] =
      uploaded_.try_emplace({bytes.data(), bytes.size(), tensor.dtype()}, Constant{});
  if (added) {
    kept_.push_back(tensor);
    opencl::Buffer buffer = plan_.context->allocate(bytes.size());
    if (!bytes.empty()) buffer.write(bytes);
    it->second = add(std::move(buffer), tensor, false, node);
  }
  return it->second;
}

Constant Constants::constant_in_place(const ir::Tensor& tensor, const ir::Node* node) {
  plan_.tables_in_place |= plan_.context->info().is_cpu();
  return add(hold(*plan_.context, tensor), tensor, true, node);
}

Constant Constants::add(opencl::Buffer buffer, const ir::Tensor& tensor, bool is_weight,
                        const ir::Node* node) {
  const Constant added = constant(std::move(buffer));
  types_[added.index] = tensor.dtype();
  if (weights_) unchecked_.push_back({added, tensor, is_weight, node});
  return added;
}

void Constants::make_constant(opencl::Kernel kernel, const ir::Tensor& tensor, std::size_t count,
                              const ir::Node* node) {
  const kernels::TypedArgument weights{.is_buffer = true, .type = tensor.dtype()};
  kernels::check_first_argument(node ? node->describe() : "weights", kernel.name(), weights);
  prepackings_.push_back({std::move(kernel), tensor, count, node});
}

Constant Constants::error_flag() {
  if (plan_.error_constant < 0) {
    opencl::Buffer flag = plan_.context->allocate(sizeof(std::int32_t));
    flag.fill(0);
    plan_.error_constant = constant(std::move(flag)).index;
    types_[plan_.error_constant] = ir::DType::i32;
  }
  return {plan_.error_constant};
}

Constant Constants::partial_sums() {
  if (plan_.partial_sums < 0)
    plan_.partial_sums =
        constant(plan_.context->allocate(bytes_of_partial_sums(plan_.context->info()))).index;
  return {plan_.partial_sums};
}

std::optional<ir::DType> Constants::type_of(const Constant& constant) const {
  const auto it = types_.find(constant.index);
  return it == types_.end() ? std::nullopt : std::optional(it->second);
}

void Constants::check(const opencl::Buffer& data, const ir::Tensor& tensor, bool is_weight,
                      const ir::Node* node) {
  if (weights_) weights_->queue(data, tensor, is_weight, node ? node->describe() : "the graph");
}

void Constants::queue() {
  opencl::Context& context = *plan_.context;
  if (weights_) weights_->begin(context, prepackings_.size() + unchecked_.size());
  for (const Unchecked& u : std::exchange(unchecked_, {}))
    check(plan_.constants[u.constant.index], u.tensor, u.is_weight, u.node);
  std::size_t bytes = 0;
  for (Prepacking& p : std::exchange(prepackings_, {})) {
    const opencl::Buffer held = hold(context, p.tensor);
    check(held, p.tensor, true, p.node);
    p.kernel.set(0, held);
    context.queue().launch_items(p.kernel, {p.count, 1, 1}, "prepack");
    bytes += p.tensor.bytes().size();
    queued_.push_back(std::move(p));
    if (bytes < kQueuedBytes) continue;
    wait_for_prepacking();
    bytes = 0;
  }
}

void Constants::wait_for_prepacking() {
  plan_.context->queue().finish();
  for (const Prepacking& prepacking : queued_) prepacking.tensor.release_pages();
  queued_.clear();
}

void Constants::wait() {
  wait_for_prepacking();
  if (weights_) weights_->finish();
}

}  // namespace bertcl::plan
