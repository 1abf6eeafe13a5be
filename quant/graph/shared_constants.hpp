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
    std::string& name = ints_[values];
    if (name.empty())
      name = model_.add(model_.fresh_name(fmt::format("attention_shape_{}", ints_.size())),
                        ir::Tensor::of<std::int64_t>({std::ssize(values)}, values));
    return name;
  }
  std::string number(std::int64_t value) {
    std::string& name = numbers_[value];
    if (name.empty())
      name = model_.add(model_.fresh_name(fmt::format("attention_number_{}", value)),
                        ir::Tensor::scalar(value));
    return name;
  }
  std::string scalar(float value) {
    std::string& name = scalars_[value];
    if (name.empty())
      name = model_.add(model_.fresh_name(fmt::format("attention_constant_{}", scalars_.size())),
                        ir::Tensor::scalar(value));
    return name;
  }

 private:
  Model& model_;
  std::map<std::vector<std::int64_t>, std::string> ints_;
  std::map<std::int64_t, std::string> numbers_;
  std::map<float, std::string> scalars_;
};

}  // namespace bertcl::quant
