// SPDX-License-Identifier: Apache-2.0
// Outputs are told apart by their shapes, and by the name that exporters give.
#include "tasks/head_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "bertcl/error.hpp"

namespace bertcl::tasks {
namespace {

bool fits(const std::vector<std::int64_t>& shape, const Head& head) {
  const std::size_t rank = head.by_token ? 3 : 2;
  if (!head.by_token && head.classes == 1 && shape.size() == 1) return true;  // [batch]
  if (shape.size() != rank) return false;
  const auto classes = static_cast<std::size_t>(shape.back());
  return head.or_more ? classes >= head.classes : classes == head.classes;
}

}  // namespace

std::string find_output(const std::vector<ModelOutput>& outputs, const Head& head) {
  // Of several the logits, else that with the fewest classes: hidden states have many.
  const auto rank = [](const ModelOutput& output) {
    return std::pair(output.name.find("logits") == std::string::npos, output.shape.back());
  };
  const ModelOutput* found = nullptr;
  std::vector<std::string> descriptions;
  for (const ModelOutput& output : outputs) {
    descriptions.push_back(output.description);
    if (output.is_float && fits(output.shape, head) && (!found || rank(output) < rank(*found)))
      found = &output;
  }
  if (found) return found->name;
  throw Error(fmt::format("the outputs are {}; the task needs [batch, {}{}{}], with {}",
                          fmt::join(descriptions, ", "), head.by_token ? "seq, " : "", head.classes,
                          head.or_more ? " or more" : "", head.meaning));
}

text::BatchOptions usual_batches(const Head& head) {
  text::BatchOptions batches;
  // A masked language model gives a number for each token and each entry of the vocabulary.
  if (head.by_token && head.or_more) batches.max_tokens = 1024;
  return batches;
}

}  // namespace bertcl::tasks
