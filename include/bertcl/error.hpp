// SPDX-License-Identifier: Apache-2.0
// The one exception type that bertcl throws on bad input or a failing device.
#pragma once
#include <stdexcept>
#include <string>

#include "bertcl/export.h"

namespace bertcl {

/// A failure whose message names the place (file, node, operator), what was found and what to do.
class BERTCL_API Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

}  // namespace bertcl
