// SPDX-License-Identifier: Apache-2.0
// Adds a prediction to an object without a search.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace bertcl::tasks {

/// Appends to an object, without a search for the id: operator[] of ordered_json compares every
/// key, which takes minutes for a million items.
inline void append_prediction(nlohmann::ordered_json& predictions, const std::string& id,
                              nlohmann::ordered_json value) {
  using Object = nlohmann::ordered_json::object_t;
  static_cast<Object::Container&>(predictions.get_ref<Object&>())
      .emplace_back(id, std::move(value));
}

}  // namespace bertcl::tasks
