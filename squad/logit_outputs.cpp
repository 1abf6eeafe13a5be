// SPDX-License-Identifier: Apache-2.0
// Logits of start and end, by the names that exporters give.
#include "squad/logit_outputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "support/fail.hpp"

namespace bertcl::squad {

std::vector<std::string> find_logits(const std::vector<ir::Port>& outputs) {
  std::string start, end, both;
  std::vector<std::string> rows;  // outputs [batch, seq]
  for (const ir::Port& port : outputs) {
    const ir::Shape& shape = port.type.shape;
    if (!ir::is_float(port.type.dtype)) continue;
    if (shape.size() == 3 && shape[2] == ir::Dim(2)) both = port.name;
    if (shape.size() != 2) continue;
    rows.push_back(port.name);
    if (port.name.find("start") != std::string::npos) start = port.name;
    if (port.name.find("end") != std::string::npos) end = port.name;
  }
  if (start.empty() && end.empty() && rows.size() == 2) {
    // "unstack:0" and "unstack:1" in any order; names that tell nothing in the order of the file.
    const auto stem = [](const std::string& name) { return name.substr(0, name.size() - 1); };
    if (stem(rows[0]) == stem(rows[1])) std::ranges::sort(rows);
    start = rows[0];
    end = rows[1];
  }
  if (!start.empty() && !end.empty()) return {start, end};
  if (both.empty())
    fail("no start and end logits among the outputs {}; expected a question-answering head",
         fmt::join(ir::describe(outputs), ", "));
  return {both};
}

}  // namespace bertcl::squad
