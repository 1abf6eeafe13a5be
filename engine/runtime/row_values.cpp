// SPDX-License-Identifier: Apache-2.0
// Rows of outputs, side by side.
#include "runtime/row_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <span>

#include "support/fail.hpp"

namespace bertcl::runtime {

std::vector<float> row_values(Session& session, const Sequences& sequences,
                              const OutputNames& outputs, bool by_token) {
  const Tensors made = session.run(sequences, outputs);
  const std::int64_t rows =
      by_token ? std::ssize(sequences.ids) : std::ssize(sequences.offsets) - 1;
  std::vector<ir::Tensor> tensors;
  std::size_t columns = 0;  // of all
  for (const std::string& name : outputs) {
    const ir::Tensor& tensor = tensors.emplace_back(made.at(name).converted(ir::DType::f32));
    if (tensor.shape().empty() || tensor.shape()[0] != rows)
      bertcl::fail("output '{}' has shape [{}], expected {} rows, one for each {}{}", name,
                   fmt::join(tensor.shape(), ", "), rows, by_token ? "token" : "sequence",
                   by_token ? "; export the model with a free sequence length" : "");
    columns += static_cast<std::size_t>(tensor.size() / rows);
  }
  std::vector<float> values(static_cast<std::size_t>(rows) * columns);
  auto to = values.begin();
  for (const ir::Tensor& tensor : tensors) {
    const auto from = tensor.as<float>();
    const std::size_t own = from.size() / static_cast<std::size_t>(rows);
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row)
      std::ranges::copy(from.subspan(row * own, own),
                        to + static_cast<std::ptrdiff_t>(row * columns));
    to += static_cast<std::ptrdiff_t>(own);
  }
  return values;
}

}  // namespace bertcl::runtime
