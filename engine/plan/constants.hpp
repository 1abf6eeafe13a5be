// SPDX-License-Identifier: Apache-2.0
// The constants of a plan: uploaded, or made on the device by kernels that prepack them.
#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "plan/plan.hpp"
#include "plan/weight_check.hpp"

namespace bertcl::plan {

class Constants {
 public:
  explicit Constants(Plan& plan) : plan_(plan) {}

  /// NaN and infinity in tensors given from now on are errors of wait(), by the name of `node`.
  void check_weights(WeightCheck& weights) { weights_ = &weights; }

  // As Builder's members of these names.
  Constant constant(opencl::Buffer buffer);
  Constant constant(const ir::Tensor& tensor, const ir::Node* node);
  Constant constant_in_place(const ir::Tensor& tensor, const ir::Node* node);
  void make_constant(opencl::Kernel kernel, const ir::Tensor& tensor, std::size_t count,
                     const ir::Node* node);
  Constant error_flag();
  Constant partial_sums();

  /// None: of prepacked weights.
  std::optional<ir::DType> type_of(const Constant& constant) const;

  /// Queues the checks and the kernels of make_constant(), whose programs are built.
  void queue();
  /// Waits for them. Throws Error for NaN and infinity.
  void wait();

 private:
  struct Unchecked {
    Constant constant;
    ir::Tensor tensor;
    bool is_weight;
    const ir::Node* node;
  };
  struct Prepacking {
    opencl::Kernel kernel;
    ir::Tensor tensor;
    std::size_t count;
    const ir::Node* node;
  };

  Constant add(opencl::Buffer buffer, const ir::Tensor& tensor, bool is_weight,
               const ir::Node* node);
  void check(const opencl::Buffer& data, const ir::Tensor& tensor, bool is_weight,
             const ir::Node* node);
  void wait_for_prepacking();

  Plan& plan_;
  WeightCheck* weights_ = nullptr;
  // By the address of the constant's bytes, which kept_ keeps alive, their number and type:
  // external data of a file may overlap.
  std::map<std::tuple<const std::byte*, std::size_t, ir::DType>, Constant> uploaded_;
  std::vector<ir::Tensor> kept_;
  std::map<int, ir::DType> types_;
  std::vector<Unchecked> unchecked_;
  std::vector<Prepacking> prepackings_, queued_;
};

}  // namespace bertcl::plan
