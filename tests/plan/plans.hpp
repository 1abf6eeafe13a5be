// SPDX-License-Identifier: Apache-2.0
// Plans of graphs in text.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "opencl/device/capabilities.hpp"
#include "plan/builder.hpp"
#include "plan/precision.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::plan {

inline std::shared_ptr<opencl::Context> device() {
  static const auto context = opencl::Context::create("cpu");
  return context;
}

inline Plan plan_of(std::string_view text, const Options& options = {}) {
  return make_plan(ir::parse(text), device(), options);
}

inline std::string refusal(std::string_view text, const Options& options = {}) {
  return error_of([&] { plan_of(text, options); });
}

}  // namespace bertcl::plan
