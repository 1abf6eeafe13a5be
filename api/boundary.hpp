// SPDX-License-Identifier: Apache-2.0
// Where exceptions leave the library: only as Error.
#pragma once
#include <exception>
#include <new>
#include <string>

#include "bertcl/error.hpp"

namespace bertcl {

template <class Work>
auto at_boundary(const Work& work) {
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw Error("not enough memory");
  } catch (const std::exception& error) {
    throw Error(std::string("internal error: ") + error.what());
  }
}

}  // namespace bertcl
