// SPDX-License-Identifier: Apache-2.0
// The roles of a BERT model's inputs, by the names that exporters give them.
#include "ir/input_role.hpp"

namespace bertcl::ir {

InputRole role_of_input(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("unique")) return InputRole::example_ids;
  if (has("mask")) return InputRole::mask;
  if (has("type") || has("segment")) return InputRole::token_types;
  if (has("position")) return InputRole::positions;
  return InputRole::ids;
}

bool is_token_ids(std::string_view name, const Type& type) {
  return role_of_input(name) == InputRole::ids && type.shape.size() == 2 && !is_float(type.dtype);
}

}  // namespace bertcl::ir
