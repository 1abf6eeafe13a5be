// SPDX-License-Identifier: Apache-2.0
// A tensor that calibration finds no range for, as it held NaN or an infinite value.
#pragma once
#include <string>
#include <utility>

#include "bertcl/error.hpp"

namespace bertcl::quant {

/// The caller knows which nodes read the tensor and can be excluded.
class NonfiniteTensor : public Error {
 public:
  NonfiniteTensor(const std::string& message, std::string tensor)
      : Error(message), tensor_(std::move(tensor)) {}

  const std::string& tensor() const noexcept { return tensor_; }

 private:
  std::string tensor_;
};

}  // namespace bertcl::quant
