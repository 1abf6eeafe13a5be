// SPDX-License-Identifier: Apache-2.0
// Look-up of kernel sources and resolution of their includes.
#include "opencl/program/sources.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "bertcl/error.hpp"
#include "opencl/program/ptx.hpp"
#include "support/read_bytes.hpp"

namespace bertcl::opencl {
namespace {

/// What cmake/EmbedKernels.cmake finds in embedded files.
SourceTraits traits_of(std::string_view text) {
  const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  return {has("__asm__"), has("barrier("), has(kSm90aComment)};
}

FinalSource read_file(const std::string& name, const std::string& wanted_by) {
  const char* folder = std::getenv("BERTCL_KERNELS");
  if (folder && *folder) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) {
      std::string text = read_bytes(path);
      const SourceTraits traits = traits_of(text);
      return {std::move(text), traits};
    }
  }
  for (const SourceFile& source : embedded_sources())
    if (source.name == name) return {std::string(source.text), source.traits};
  std::string known;
  for (const std::string& program : program_names()) known += " " + program;
  throw Error("kernel file '" + name + "' (required by " + wanted_by +
              ") is not part of this build; programs:" + known);
}

// The file name of a line `#include "name"`, else empty.
std::string included_name(std::string_view line) {
  const size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string_view::npos || line[hash] != '#') return {};
  const size_t word = line.find_first_not_of(" \t", hash + 1);
  if (word == std::string_view::npos || line.substr(word, 7) != "include") return {};
  const size_t open = line.find('"', word);
  const size_t close = open == std::string_view::npos ? open : line.find('"', open + 1);
  if (close == std::string_view::npos) return {};
  return std::string(line.substr(open + 1, close - open - 1));
}

void append(FinalSource& source, const std::string& name, const std::string& wanted_by,
            std::set<std::string>& seen) {
  const FinalSource file = read_file(name, wanted_by);
  source.traits.has_assembly |= file.traits.has_assembly;
  source.traits.has_barriers |= file.traits.has_barriers;
  source.traits.has_sm_90a |= file.traits.has_sm_90a;
  std::string& out = source.text;
  std::istringstream lines(file.text);
  out += "#line 1 \"" + name + "\"\n";
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string included = included_name(line);
    if (included.empty()) {
      out += line + "\n";
      continue;
    }
    if (seen.insert(included).second) append(source, included, name, seen);
    out += "#line " + std::to_string(number + 1) + " \"" + name + "\"\n";
  }
}

std::string_view stem_of(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return path.substr(0, path.size() - std::string_view(".cl").size());
}

// Where the program lies: in the first place of BERTCL_KERNELS, or in a folder of kernels_cl.
std::string path_of(const std::string& stem) {
  const std::string name = stem + ".cl";
  const char* folder = std::getenv("BERTCL_KERNELS");
  if (folder && *folder && std::filesystem::exists(std::filesystem::path(folder) / name))
    return name;
  for (const SourceFile& source : embedded_sources())
    if (source.name.ends_with(".cl") && stem_of(source.name) == stem)
      return std::string(source.name);
  return name;
}

}  // namespace

void check_kernel_folder() {
  const char* folder = std::getenv("BERTCL_KERNELS");
  std::error_code ignored;
  if (folder && *folder && !std::filesystem::is_directory(folder, ignored))
    throw Error("BERTCL_KERNELS names '" + std::string(folder) + "', which is not a folder");
}

std::vector<std::string> program_names() {
  std::vector<std::string> names;
  for (const SourceFile& source : embedded_sources())
    if (source.name.ends_with(".cl")) names.emplace_back(stem_of(source.name));
  std::ranges::sort(names);
  return names;
}

FinalSource final_source(std::string_view stem) {
  const std::string name = path_of(std::string(stem));
  std::set<std::string> seen{name};
  FinalSource source;
  append(source, name, "the program '" + std::string(stem) + "'", seen);
  return source;
}

}  // namespace bertcl::opencl
