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

/// The message of the last call of this thread that failed.
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
      translate_exceptions(work);
      return BERTCL_OK;
    } catch (const Error& error) {
      last_error() = error.what();
      return static_cast<bertcl_status>(error.code());
    }
  } catch (...) {  // no memory, maybe none for the message: this one needs none
    last_error() = "out of memory";
  }
  return BERTCL_OUT_OF_MEMORY;
}

/// What the caller's version of a struct lacks is 0, and what only that version has must be 0.
/// Throws Error that says which of them `name` breaks.
template <class Struct>
Struct read(const Struct* given, const std::string& name) {
  if (!given) throw Error(name + " must not be NULL");
  if (given->size < sizeof(given->size) || given->size > 16 * sizeof(Struct))
    throw Error("the size of " + name + " is " + std::to_string(given->size) +
                "; set it to the sizeof of its struct");
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (std::any_of(bytes + std::min(given->size, sizeof(Struct)), bytes + given->size,
                  [](unsigned char byte) { return byte != 0; }))
    throw Error(
        name +
        " sets a member that this version of bertcl does not know; set it to 0, or update bertcl");
  Struct all{};
  std::memcpy(&all, given, std::min(given->size, sizeof(Struct)));
  return all;
}

/// The same of options, which may be NULL: all defaults.
template <class Options>
Options read_options(const Options* given) {
  return given ? read(given, "options") : Options{};
}

/// Fills what the caller's version has. Throws Error without a size.
template <class Struct>
void write(const Struct& all, Struct* given, const char* name) {
  if (!given) throw Error(std::string(name) + " must not be NULL");
  if (given->size < sizeof(given->size))
    throw Error(std::string("the size of ") + name + " is " + std::to_string(given->size) +
                "; set it to the sizeof of its struct");
  const std::size_t size = given->size;
  std::memcpy(given, &all, std::min(size, sizeof(Struct)));
  given->size = size;
}

/// Throws Error if `index` is none of `count` things.
inline void check_index(std::size_t index, std::size_t count, const char* things) {
  if (index >= count)
    throw Error("index " + std::to_string(index) + " is out of range: there are " +
                std::to_string(count) + " " + things);
}

/// Copies them. Throws Error where a part is missing.
Sequences sequences_of(const bertcl_sequences* sequences);

}  // namespace bertcl::c
