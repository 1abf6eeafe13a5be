// SPDX-License-Identifier: Apache-2.0
// A function of Python as the progress of a long call of the library.
#pragma once
#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

#include "bertcl/bertcl.hpp"
#include "lock.hpp"

/// Calls a function of Python from a thread that has released the lock. What it raises, or an
/// interrupt, ends the work and is raised once that has ended.
class Callback {
 public:
  explicit Callback(nanobind::object function) : function_(std::move(function)) {}

  template <class... Arguments>
  bool operator()(const Arguments&... arguments) {
    LockTaken locked;
    try {
      if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
      if (!function_.is_none()) function_(arguments...);
      return true;
    } catch (nanobind::python_error& error) {
      raised_ = std::make_unique<nanobind::python_error>(std::move(error));
      return false;
    }
  }

  /// Runs `work` without the lock.
  template <class Work>
  auto around(const Work& work) {
    try {
      LockReleased others_run;
      return work();
    } catch (const bertcl::Error&) {
      if (raised_) throw nanobind::python_error(std::move(*raised_));
      throw;
    }
  }

 private:
  nanobind::object function_;
  std::unique_ptr<nanobind::python_error> raised_;
};
