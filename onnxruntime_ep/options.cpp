// SPDX-License-Identifier: Apache-2.0
// Reading the options of the provider.
#include "onnxruntime_ep/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <limits>
#include <vector>

#include "bertcl/error.hpp"
#include "bertcl/session.hpp"
#include "ops/precision.hpp"
#include "support/parse_number.hpp"

namespace bertcl::onnxruntime_ep {
namespace {

using Text = const std::string&;

[[noreturn]] void refuse(Text name, Text value, Text what) {
  throw Error(fmt::format("option {}: '{}' is not {}", name, value, what));
}

std::int64_t number(Text name, Text value, std::int64_t min, std::int64_t max) {
  const auto result = parse_number<std::int64_t>(value);
  if (!result || *result < min || *result > max)
    refuse(name, value, fmt::format("an integer from {} to {}", min, max));
  return *result;
}

bool yes_or_no(Text name, Text value) {
  if (value == "1" || value == "true" || value == "True") return true;
  if (value == "0" || value == "false" || value == "False") return false;
  refuse(name, value, "0 or 1");
}

ir::DType precision(Text name, Text value) {
  if (const auto type = ops::precision_named(value)) return *type;
  refuse(name, value, "one of fp32, fp16, bf16");
}

using Setter = std::function<void(runtime::SessionOptions&, Text name, Text value)>;

const std::map<std::string, Setter>& setters() {
  using Options = runtime::SessionOptions;
  static const std::map<std::string, Setter> all{
      {"device", [](Options& o, Text, Text value) { o.device = value; }},
      {"precision", [](Options& o, Text n, Text value) { o.precision = precision(n, value); }},
      {"max_memory",
       [](Options& o, Text n, Text value) {
         o.max_memory = number(n, value, 0, std::numeric_limits<std::int64_t>::max());
       }},
      {"requests",
       [](Options& o, Text n, Text value) {
         o.requests = static_cast<int>(number(n, value, 1, max_requests));
       }},
      {"require_int8",
       [](Options& o, Text n, Text value) { o.require_int8 = yes_or_no(n, value); }},
      {"allow_nonfinite",
       [](Options& o, Text n, Text value) { o.allow_nonfinite = yes_or_no(n, value); }},
      {"drop_padding",
       [](Options& o, Text n, Text value) { o.drop_padding = yes_or_no(n, value); }},
  };
  return all;
}

}  // namespace

runtime::SessionOptions read_options(const std::map<std::string, std::string>& options) {
  runtime::SessionOptions result;
  result.allow_nonfinite = false;  // an option of the provider: errors name it
  for (const auto& [name, value] : options) {
    const auto found = setters().find(name);
    if (found == setters().end()) {
      std::vector<std::string> names;
      for (const auto& [known, setter] : setters()) names.push_back(known);
      throw Error(
          fmt::format("unknown option '{}' (choose from {})", name, fmt::join(names, ", ")));
    }
    found->second(result, name, value);
  }
  return result;
}

}  // namespace bertcl::onnxruntime_ep
