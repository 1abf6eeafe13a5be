// SPDX-License-Identifier: Apache-2.0
// PTX for a more specific target.
#include "opencl/program/ptx.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "bertcl/error.hpp"

namespace bertcl::opencl {
namespace {

constexpr double kVersion = 8.4;  // of PTX, the first with wgmma of u8 by s8

struct Word {
  std::size_t begin, size;
};

/// What follows a directive; throws Error if there is none.
Word word_after(std::string_view ptx, std::string_view directive) {
  const std::size_t found = ptx.find(directive);
  if (found == std::string_view::npos)
    throw Error("the binary of the driver is not PTX", ErrorCode::device);
  const std::size_t begin = std::min(found + directive.size(), ptx.size());
  const auto is_of_word = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; };
  const auto end =
      std::find_if_not(ptx.begin() + static_cast<std::ptrdiff_t>(begin), ptx.end(), is_of_word);
  return {begin, static_cast<std::size_t>(end - ptx.begin()) - begin};
}

}  // namespace

std::string ptx_for_sm_90a(std::string ptx) {
  const Word target = word_after(ptx, "\n.target ");
  if (const std::string name = ptx.substr(target.begin, target.size); name != "sm_90")
    throw Error(fmt::format("the driver's PTX is for {}, not sm_90", name), ErrorCode::device);
  ptx.replace(target.begin, target.size, "sm_90a");
  const Word version = word_after(ptx, "\n.version ");
  double number = 0;  // strtod() would depend on the locale
  std::from_chars(ptx.data() + version.begin, ptx.data() + version.begin + version.size, number);
  if (number < kVersion) ptx.replace(version.begin, version.size, fmt::format("{:.1f}", kVersion));
  for (std::size_t at = 0; (at = ptx.find(kSm90aComment, at)) != std::string::npos;) {
    const std::size_t end = ptx.find("*/", at);
    if (end == std::string::npos)
      throw Error("the driver's PTX has a comment '/*sm_90a:' without an end", ErrorCode::device);
    ptx.erase(end, 2).erase(at, kSm90aComment.size());
  }
  return ptx;
}

}  // namespace bertcl::opencl
