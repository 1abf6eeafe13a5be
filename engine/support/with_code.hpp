// SPDX-License-Identifier: Apache-2.0
// A code for all errors of a part of the work: most places that throw name none.
#pragma once
#include "bertcl/error.hpp"

namespace bertcl {

/// What `work` returns. An Error without a code of its own (invalid_argument) leaves with `code`.
template <class Work>
auto with_code(ErrorCode code, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    throw Error(error.what(), code);
  }
}

}  // namespace bertcl
