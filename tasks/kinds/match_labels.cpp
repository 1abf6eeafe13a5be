// SPDX-License-Identifier: Apache-2.0
// Labels by name, by the names of negative and positive, and by number.
#include "tasks/kinds/match_labels.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <ranges>

#include "support/fail.hpp"
#include "support/option_name.hpp"
#include "support/parse_number.hpp"
#include "tasks/data/readers.hpp"
#include "text/base/data_file.hpp"
#include "text/base/unicode.hpp"

namespace bertcl::tasks {
namespace {

using Labels = std::vector<std::string>;
using text::lower_ascii;

/// The classes of a model that stand for labels of the data.
using ClassOf = std::map<std::string, std::size_t>;

/// The classes that `class_for(label)` finds; none if a label has no class.
template <class ClassFor>
std::optional<ClassOf> match(const DataLabels& data, const ClassFor& class_for) {
  ClassOf class_of;
  for (const auto& [label, line] : data) {
    const std::optional<std::size_t> at = class_for(label);
    if (!at) return std::nullopt;
    class_of[label] = *at;
  }
  return class_of;
}

bool is_number(const std::string& label) { return parse_number<std::size_t>(label).has_value(); }

/// 0 for "0", "neg", "NEGATIVE", "LABEL_0"; 1 for their opposites; none for anything else.
std::optional<std::size_t> polarity_of(const std::string& name) {
  const std::string label = lower_ascii(name);
  if (label == "0" || label == "label_0" || label == "neg" || label == "negative") return 0;
  if (label == "1" || label == "label_1" || label == "pos" || label == "positive") return 1;
  return std::nullopt;
}

constexpr const char* kHeaderHint = "; if it is a header, name its columns text and label";

bool is_only(const DataLabels& labels, const std::string& label) {
  return labels.size() == 1 && labels.contains(label);
}

/// A label's class by the names of the model's classes.
class NamedClasses {
 public:
  explicit NamedClasses(const Labels& names)
      : names_(names),
        polar_(names.size() == 2 && polarity_of(names[0]) && polarity_of(names[1]) &&
               polarity_of(names[0]) != polarity_of(names[1])),
        numbers_(std::ranges::any_of(names, is_number)) {}

  /// Its name, or else its name without case.
  std::optional<std::size_t> by_name(const std::string& label) const {
    if (const auto same = find([&](const std::string& name) { return name == label; })) return same;
    return find([&](const std::string& name) { return lower_ascii(name) == lower_ascii(label); });
  }
  /// Of negative and positive by any of their names.
  std::optional<std::size_t> by_polarity(const std::string& label) const {
    const auto polarity = polarity_of(label);
    if (!polar_ || !polarity) return std::nullopt;
    return find([&](const std::string& name) { return polarity_of(name) == polarity; });
  }
  std::optional<std::size_t> by_number(const std::string& label) const {
    const auto number = parse_number<std::size_t>(label);
    return number && *number < names_.size() ? number : std::nullopt;
  }
  /// By one of these; numbers only where they are not names.
  std::optional<std::size_t> by_any(const std::string& label) const {
    if (const auto at = by_name(label)) return at;
    if (const auto at = by_polarity(label)) return at;
    return numbers_ ? std::nullopt : by_number(label);
  }

 private:
  template <class Is>
  std::optional<std::size_t> find(const Is& is) const {
    const auto found = std::ranges::find_if(names_, is);
    if (found == names_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - names_.begin());
  }

  const Labels& names_;
  const bool polar_, numbers_;
};

/// All labels by name, all by polarity, all as numbers that count the classes, or each in its way.
ClassOf match_names(const DataLabels& data, const Labels& names, const std::string& header) {
  for (const auto& label : data)
    if (std::ranges::count(names, label.first) > 1)
      fail("{}, the name of more than one of the model's classes: {}; tell them apart with {}",
           found_text({label}), fmt::join(names, ", "), option_name("labels"));
  const NamedClasses classes(names);
  if (auto same = match(data, [&](auto& label) { return classes.by_name(label); })) return *same;
  if (auto same = match(data, [&](auto& label) { return classes.by_polarity(label); }))
    return *same;
  if (auto same = match(data, [&](auto& label) { return classes.by_number(label); })) return *same;
  if (auto same = match(data, [&](auto& label) { return classes.by_any(label); })) return *same;
  DataLabels unknown = data;
  std::erase_if(unknown, [&](const auto& label) { return classes.by_any(label.first); });
  const bool lists_classes = std::ranges::all_of(
      split_labels(header), [&](const auto& label) { return classes.by_any(label).has_value(); });
  if (is_only(unknown, header) && data.size() > 1 && !lists_classes)
    fail(
        "line {}: {} is not among the model's classes: {}{}; if the data only names the classes "
        "differently, give its names in the order of the model's outputs with {}",
        data.at(header), labels_text({{header, 0}}), fmt::join(names, ", "), kHeaderHint,
        option_name("labels"));
  fail(
      "{}, not among the model's classes: {}; if the data only names them differently, give "
      "its names in the order of the model's outputs with {}",
      found_text(unknown), fmt::join(names, ", "), option_name("labels"));
}

/// True if the labels name negative and positive, not only their numbers.
bool are_polar(const DataLabels& data) {
  const auto labels = std::views::keys(data);
  return std::ranges::all_of(labels, [](auto& label) { return polarity_of(label).has_value(); }) &&
         !std::ranges::all_of(labels, is_number);
}

/// Without names of the model's classes: numbers count them.
ClassOf match_numbers(const DataLabels& data, const std::string& header) {
  DataLabels names = data;
  std::erase_if(names, [](const auto& label) { return is_number(label.first); });
  if (is_only(names, header) && data.size() > 1)
    fail("line {}: {} is not a number{}; for names list the classes in output order with {}",
         data.at(header), labels_text({{header, 0}}), kHeaderHint, option_name("labels"));
  ClassOf class_of;
  for (const auto& [label, line] : data) {
    const auto number = parse_number<std::size_t>(label);
    if (!number)
      fail(
          "cannot map {} to the model's classes, whose names are unknown; list them in output "
          "order with {}, or put the model's config.json with id2label beside it",
          labels_text(data), option_name("labels"));
    if (*number >= kMaxClasses)
      fail(
          "{}label {}, read as a class index from 0, exceeds the limit of {} classes; if it is a "
          "name, list the classes in output order with {}",
          line > 0 ? fmt::format("line {}: ", line) : "", label, kMaxClasses,
          option_name("labels"));
    class_of[label] = *number;
  }
  return class_of;
}

}  // namespace

std::string labels_text(const DataLabels& labels) {
  constexpr std::size_t max_labels = 8;
  std::string names;
  for (const std::string& label : std::views::keys(labels) | std::views::take(max_labels)) {
    if (!names.empty()) names += ", ";
    names += label.empty() ? "\"\"" : text::excerpt_of(label);
  }
  return labels.size() > max_labels
             ? fmt::format("{} and {} more", names, labels.size() - max_labels)
             : names;
}

std::string found_text(const DataLabels& labels) {
  const std::size_t line = std::ranges::min(std::views::values(labels));
  return fmt::format("{}the data contain {}", line > 0 ? fmt::format("line {}: ", line) : "",
                     labels_text(labels));
}

std::string MatchedLabels::name_of(std::size_t index) const {
  return index < names.size() && !names[index].empty() ? names[index] : std::to_string(index);
}

std::string possible_header(const std::vector<ClassifiedText>& texts) {
  const auto first = std::ranges::find_if(texts, &ClassifiedText::first_row);
  if (first == texts.end() || std::ranges::count(texts, first->label, &ClassifiedText::label) > 1)
    return "";
  return first->label;
}

MatchedLabels match_labels(const DataLabels& data, const Labels& model_labels,
                           std::size_t min_classes, const std::string& header) {
  MatchedLabels matched;
  // Where the model does not name its classes, data may say that there are two.
  const bool polar = model_labels.empty() && are_polar(data);
  const Labels names = polar ? Labels{"negative", "positive"} : model_labels;
  matched.names = names;
  matched.class_of = names.empty() ? match_numbers(data, header) : match_names(data, names, header);
  Head& head = matched.head;
  head.classes = std::max(min_classes, names.size());
  head.or_more = names.empty();
  // Predictions are named as the data name them, by numbers only where these have no name.
  for (const bool numbers : {true, false}) {
    for (const auto& [label, index] : matched.class_of) {
      if (is_number(label) != numbers) continue;
      head.classes = std::max(head.classes, index + 1);
      if (matched.names.size() <= index) matched.names.resize(index + 1);
      matched.names[index] = label;
    }
  }
  head.meaning = fmt::format("{} classes", head.classes);
  if (!names.empty()) head.meaning += fmt::format(": {}", fmt::join(names, ", "));
  return matched;
}

std::vector<Sequence> encode_classified(const ClassifiedText& text,
                                        const text::Tokenizer& tokenizer,
                                        const EncodeOptions& options) {
  if (options.windows && !text.second)
    return encode_windows(text.text, tokenizer, options.max_length);
  return {encode_text(text.text, text.second, tokenizer, options.max_length)};
}

}  // namespace bertcl::tasks
