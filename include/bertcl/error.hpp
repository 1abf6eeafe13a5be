// SPDX-License-Identifier: Apache-2.0
// The one exception type that bertcl throws.
#pragma once
#include <stdexcept>
#include <string>

#include "bertcl/export.h"

namespace bertcl {

/// What a caller can do about a failure. The numbers are those of bertcl_status.
enum class ErrorCode {
  invalid_argument = 1,  ///< give other inputs or options: names, shapes, values
  invalid_file,   ///< a model, vocabulary or data set is damaged or of another kind: replace it
  unsupported,    ///< the model asks for something that bertcl does not have: change the model
  device,         ///< there is no such device, or its driver failed: choose another
  out_of_memory,  ///< of device, host or SessionOptions::max_memory: give smaller batches
  io,             ///< a file cannot be read or written
  busy,           ///< SessionOptions::requests runs are in flight: finish one first
  cancelled,      ///< a callback asked for it
  internal        ///< a bug of bertcl: report it
};

/// A failure whose message names the place (file, node, operator), what was found and what to do.
class BERTCL_API Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, ErrorCode code = ErrorCode::invalid_argument)
      : std::runtime_error(message), code_(code) {}

  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace bertcl
