// SPDX-License-Identifier: Apache-2.0
// Finds float constants of a plan that hold NaN or infinity, and names them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.hpp"
#include "opencl/buffer.hpp"
#include "opencl/context.hpp"

namespace bertcl::plan {

/// Small constants are checked on the host, large ones on the device. NaN is an error in all;
/// infinity, which masks and bounds may hold, only in weights of MatMuls and tables.
class WeightCheck {
 public:
  /// Records the names of the constants, and throws Error for a small one that holds NaN.
  /// `has_option`: errors name allow_nonfinite.
  WeightCheck(const ir::Graph& graph, bool has_option);

  /// To be called before the first queue(); `tensors`: how many at most.
  void begin(opencl::Context& context, std::size_t tensors);
  /// Queues the check of `data`, which holds the bytes of `tensor`; `reader` tells of one that is
  /// no constant of the graph.
  void queue(const opencl::Buffer& data, const ir::Tensor& tensor, bool is_weight,
             const std::string& reader);
  /// Waits. Throws Error that names the first tensor with such an element, and its place.
  void finish();

 private:
  [[noreturn]] void fail(const std::string& name, const ir::Sizes& shape, bool is_weight,
                         std::int64_t index) const;

  struct Queued {
    std::string name;
    ir::Sizes shape;
    bool is_weight;
  };
  bool has_option_;
  /// Names by the address and number of the bytes: external data of a file may overlap.
  std::map<std::pair<const std::byte*, std::size_t>, std::string> names_;
  opencl::Context* context_ = nullptr;
  opencl::Kernel kernel_;
  opencl::Buffer found_;
  std::vector<Queued> queued_;
};

}  // namespace bertcl::plan
