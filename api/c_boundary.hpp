// SPDX-License-Identifier: Apache-2.0
// What the C interfaces share: statuses, the message of a failure, structs that begin with their
// size.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "api/boundary.hpp"
#include "bertcl/bertcl.h"
#include "bertcl/sequences.hpp"

namespace bertcl::c {

/// Of this thread.
std::string& last_error();

inline bertcl_status refuse(const char* what) noexcept {
  try {
    last_error() = what;
  } catch (...) {  // no memory for it
  }
  return BERTCL_INVALID_ARGUMENT;
}

template <class Work>
bertcl_status guarded(const Work& work) noexcept {
  try {
    try {
      at_boundary(work);
      return BERTCL_OK;
    } catch (const Error& error) {
      last_error() = error.what();
      return static_cast<bertcl_status>(error.code());
    }
  } catch (...) {  // no memory, maybe none for the message
  }
  return BERTCL_OUT_OF_MEMORY;
}

/// What the caller's version of a struct lacks is 0, and what only that version has must be 0.
template <class Struct>
bool read(const Struct* given, Struct& all) {
  all = {};
  if (!given || given->size < sizeof(given->size) || given->size > 16 * sizeof(Struct))
    return false;
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (std::any_of(bytes + std::min(given->size, sizeof(Struct)), bytes + given->size,
                  [](unsigned char byte) { return byte != 0; }))
    return false;
  std::memcpy(&all, given, std::min(given->size, sizeof(Struct)));
  return true;
}

template <class Struct>
bool write(const Struct& all, Struct* given) {
  if (!given || given->size < sizeof(given->size)) return false;
  const std::size_t size = given->size;
  std::memcpy(given, &all, std::min(size, sizeof(Struct)));
  given->size = size;
  return true;
}

/// Copies them. Throws Error where a part is missing.
Sequences sequences_of(const bertcl_sequences* sequences);

}  // namespace bertcl::c
