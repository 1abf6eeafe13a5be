// SPDX-License-Identifier: Apache-2.0
// Which class of a model a label of the data is.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tasks/task.hpp"

namespace bertcl::tasks {

/// The labels of the data, and the line of the first text of each: ClassifiedText::line.
using DataLabels = std::map<std::string, std::size_t>;

/// The first of the labels, for messages: "3, fine and 2 more"; an empty one is "".
std::string labels_text(const DataLabels& labels);

/// "line 3: the data contain 3, fine", with the least of the lines where these are known.
std::string found_text(const DataLabels& labels);

/// Classes that labels may count where the model's have no names.
inline constexpr std::size_t kMaxClasses = 1'000'000;

struct MatchedLabels {
  std::map<std::string, std::size_t> class_of;  ///< of each label of the data
  std::vector<std::string> names;  ///< of classes, as the data name them; empty where not known
  Head head;

  /// Its name, else its number.
  std::string name_of(std::size_t index) const;
};

/// The label of the first row of a table, if no other row has it and it may be a column's name in a
/// header; else "".
std::string possible_header(const std::vector<ClassifiedText>& texts);

/// As classify_task() says; a model of `min_classes` classes or more. Throws Error if a label has
/// no class, is the name of several, or is a number that counts more than kMaxClasses; it says so
/// where only `header` has none.
MatchedLabels match_labels(const DataLabels& data, const std::vector<std::string>& model_labels,
                           std::size_t min_classes, const std::string& header = "");

/// One sequence, or with `windows` as many as a text without a second one needs.
std::vector<Sequence> encode_classified(const ClassifiedText& text,
                                        const text::Tokenizer& tokenizer,
                                        const EncodeOptions& options);

}  // namespace bertcl::tasks
