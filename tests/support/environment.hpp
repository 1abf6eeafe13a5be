// SPDX-License-Identifier: Apache-2.0
// Environment variables that a test sets and that are as before when it ends.
#pragma once
#include <cstdlib>
#include <optional>
#include <string>

namespace bertcl::tests {

/// Sets a variable, or unsets it (no value), for the life of the object.
class ScopedVariable {
 public:
  explicit ScopedVariable(const char* name, const std::optional<std::string>& value = std::nullopt)
      : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~ScopedVariable() { set(before_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

  void set(const std::optional<std::string>& value) {
    if (value)
      setenv(name_, value->c_str(), 1);
    else
      unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace bertcl::tests
