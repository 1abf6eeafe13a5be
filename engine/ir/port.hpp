// SPDX-License-Identifier: Apache-2.0
// The tensors that go into a model and come out of it.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace bertcl::ir {

/// A tensor that the user passes in or gets back.
struct Port {
  std::string name;
  Type type;
};

/// "logits f32[batch, 2]" for each port.
inline std::vector<std::string> describe(const std::vector<Port>& ports) {
  std::vector<std::string> texts;
  for (const Port& port : ports) texts.push_back(port.name + " " + str(port.type));
  return texts;
}

}  // namespace bertcl::ir
