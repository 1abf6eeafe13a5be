// SPDX-License-Identifier: Apache-2.0
// Where exceptions leave the library: only as Error.
#pragma once
#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>
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
    throw Error("not enough memory", ErrorCode::out_of_memory);
  } catch (const std::length_error&) {  // a size beyond any memory
    throw Error("not enough memory", ErrorCode::out_of_memory);
  } catch (const std::filesystem::filesystem_error& error) {
    throw Error(error.what(), ErrorCode::io);
  } catch (const std::exception& error) {
    throw Error(std::string("internal error: ") + error.what(), ErrorCode::internal);
  }
}

}  // namespace bertcl
