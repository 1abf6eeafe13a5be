// SPDX-License-Identifier: Apache-2.0
// Where exceptions leave the library: only as Error.
#pragma once
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "bertcl/error.hpp"

namespace bertcl {

template <class Work>
auto translate_exceptions(const Work& work) {
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw Error("out of memory", ErrorCode::out_of_memory);
  } catch (const std::length_error&) {  // a size beyond any memory
    throw Error("out of memory", ErrorCode::out_of_memory);
  } catch (const std::filesystem::filesystem_error& error) {
    throw Error(error.what(), ErrorCode::io);
  } catch (const std::exception& error) {
    throw Error(std::string("internal error: ") + error.what(), ErrorCode::internal);
  }
}

/// What a handle holds. Throws Error of one that was moved from.
template <class Impl>
Impl& held(const std::unique_ptr<Impl>& impl, const char* what) {
  if (!impl) throw Error(std::string("this ") + what + " was moved from");
  return *impl;
}

/// What a function of the caller gives. Whatever it throws is an Error of the code `cancelled`,
/// with its message, if it has one.
template <class Call>
auto call_user_callback(const Call& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    throw Error(std::string("the callback failed: ") + error.what(), ErrorCode::cancelled);
  } catch (...) {
    throw Error("the callback failed: it threw an exception of an unknown type",
                ErrorCode::cancelled);
  }
}

}  // namespace bertcl
