// SPDX-License-Identifier: Apache-2.0
// Questions with the paragraphs that answer them, from data in the form of SQuAD.
#pragma once
#include "tasks/task.hpp"

namespace bertcl::tasks {

/// The questions of a squad::Dataset that have an answer, each with its context; tasks/ and squad/
/// stand side by side, so the type is a parameter.
template <class Dataset>
QuestionParagraphs answered_questions(const Dataset& dataset) {
  QuestionParagraphs data;
  data.paragraphs = dataset.contexts;
  for (const auto& question : dataset.questions)
    if (!question.is_impossible && !question.answers.empty())
      data.questions.push_back({question.id, question.text, question.context});
  return data;
}

}  // namespace bertcl::tasks
