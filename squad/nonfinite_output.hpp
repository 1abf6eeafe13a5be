// SPDX-License-Identifier: Apache-2.0
// A model's output that no score can be made of.
#pragma once
#include <cstddef>
#include <string>

#include "bertcl/error.hpp"

namespace bertcl::squad {

/// item(): its index among the evaluated ones, for callers that know its place in the file.
class NonfiniteOutput : public Error {
 public:
  NonfiniteOutput(const std::string& message, std::size_t item) : Error(message), item_(item) {}

  std::size_t item() const noexcept { return item_; }

 private:
  std::size_t item_;
};

}  // namespace bertcl::squad
