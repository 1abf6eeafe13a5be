// SPDX-License-Identifier: Apache-2.0
// Files of one array: .npy, .npz, .safetensors.
#include "tools/report/array_file.hpp"

#include <cstddef>
#include <span>

#include "npz/npy.hpp"
#include "npz/npz.hpp"
#include "npz/safetensors.hpp"
#include "support/lower_case.hpp"
#include "support/pending_file.hpp"

namespace bertcl::tools {
namespace {

std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

bool has_ending(std::string_view path, std::string_view ending) {
  return lower_case(std::string(path)).ends_with(ending);
}

bool is_array_file(const std::string& path) {
  return has_ending(path, ".npy") || has_ending(path, ".npz") || has_ending(path, ".safetensors");
}

void write_array(const std::string& path, const std::string& name, const ir::Tensor& tensor) {
  if (has_ending(path, ".npz")) return npz::save(path, {{name, tensor}});
  write_file(path, has_ending(path, ".npy") ? as_text(npz::format_npy(tensor))
                                            : npz::format_safetensors({{name, tensor}}));
}

}  // namespace bertcl::tools
