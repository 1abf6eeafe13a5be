// SPDX-License-Identifier: Apache-2.0
// Small constants that the nodes of expanded attention share.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "quant/graph/model.hpp"

namespace bertcl::quant {

/// Each value is an initializer once. The functions return its name.
class SharedConstants {
 public:
  explicit SharedConstants(Model& model) : model_(model) {}

  std::string ints(const std::vector<std::int64_t>& values) {
    return named(ints_, values, fmt::format("attention_shape_{}", ints_.size() + 1),
                 ir::Tensor::of<std::int64_t>({std::ssize(values)}, values));
  }
  std::string number(std::int64_t value) {
    return named(numbers_, value, fmt::format("attention_number_{}", value),
                 ir::Tensor::scalar(value));
  }
  std::string scalar(float value) {
    return named(scalars_, value, fmt::format("attention_constant_{}", scalars_.size() + 1),
                 ir::Tensor::scalar(value));
  }

 private:
  template <class Value>
  std::string named(std::map<Value, std::string>& known, const Value& value,
                    const std::string& name, const ir::Tensor& tensor) {
    const auto [entry, is_new] = known.try_emplace(value);
    if (is_new) entry->second = model_.add(model_.fresh_name(name), tensor);
    return entry->second;
  }

  Model& model_;
  std::map<std::vector<std::int64_t>, std::string> ints_;
  std::map<std::int64_t, std::string> numbers_;
  std::map<float, std::string> scalars_;
};

}  // namespace bertcl::quant
