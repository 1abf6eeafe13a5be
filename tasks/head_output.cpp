// SPDX-License-Identifier: Apache-2.0
// Outputs are told apart by their shapes, and by the name that exporters give.
#include "tasks/head_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "squad/logit_outputs.hpp"
#include "support/fail.hpp"
#include "tasks/load.hpp"

namespace bertcl::tasks {
namespace {

/// 0 where their number is free.
std::size_t classes_of(const ir::Port& output) {
  const ir::Shape& shape = output.type.shape;
  const bool known = !shape.empty() && shape.back().is_constant();
  return known ? static_cast<std::size_t>(shape.back().constant()) : 0;
}

bool fits(const ir::Port& output, const Head& head) {
  const std::size_t rank = output.type.shape.size(), classes = classes_of(output);
  if (!ir::is_float(output.type.dtype)) return false;
  if (!head.by_token && head.classes == 1 && rank == 1) return true;  // [batch]
  if (rank != (head.by_token ? 3 : 2)) return false;
  return head.or_more ? classes >= head.classes : classes == head.classes;
}

}  // namespace

std::string find_output(const std::vector<ir::Port>& outputs, const Head& head) {
  // Of several the logits, else that with the fewest classes: hidden states have many.
  const auto rank = [](const ir::Port& output) {
    return std::pair(output.name.find("logits") == std::string::npos, classes_of(output));
  };
  const ir::Port* found = nullptr;
  for (const ir::Port& output : outputs)
    if (fits(output, head) && (!found || rank(output) < rank(*found))) found = &output;
  if (found) return found->name;
  fail("the outputs are {}; the task needs [batch, {}{}{}], with {}",
       fmt::join(ir::describe(outputs), ", "), head.by_token ? "seq, " : "", head.classes,
       head.or_more ? " or more" : "", head.meaning);
}

std::vector<std::string> find_outputs(const std::vector<ir::Port>& outputs, const Head& head) {
  if (head.is_span) return squad::find_logits(outputs);
  return {find_output(outputs, head)};
}

std::vector<std::string> fitting_tasks(const std::vector<ir::Port>& outputs,
                                       std::int64_t vocabulary) {
  std::vector<std::string> tasks;
  const auto add = [&](const char* task) {
    if (std::ranges::find(tasks, task) == tasks.end()) tasks.emplace_back(task);
  };
  for (const ir::Port& output : outputs) {
    const std::size_t rank = output.type.shape.size(), classes = classes_of(output);
    if (!ir::is_float(output.type.dtype) || rank < 2 || rank > 3 || classes == 0) continue;
    // Vectors have more dimensions than most heads have classes.
    const auto has = [&](const char* part) { return output.name.find(part) != std::string::npos; };
    const bool vector = has("hidden") || has("embedding") || has("pooler");
    const bool scores = has("logits") || (classes <= 100 && !vector);
    if (rank == 3 && static_cast<std::int64_t>(classes) == vocabulary) {
      add(kFillMask);
    } else if (!scores) {
      add(kRetrieval);
      add(kSimilarity);
    } else if (rank == 3) {
      add(kTag);
    } else if (classes == 1) {
      add(kReranking);
      add(kSimilarity);
    } else {
      add(kClassify);
    }
  }
  return tasks;
}

text::BatchOptions usual_batches(const Head& head) {
  text::BatchOptions batches;
  // A masked language model gives a number for each token and each entry of the vocabulary.
  if (head.by_token && head.or_more) batches.max_tokens = 1024;
  return batches;
}

}  // namespace bertcl::tasks
