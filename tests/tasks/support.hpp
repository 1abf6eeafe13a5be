// SPDX-License-Identifier: Apache-2.0
// What the tests of this folder share: a tokenizer, refusals of files, the value of a metric,
// numbers.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

#include "tasks/data/readers.hpp"
#include "tasks/evaluate.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::tasks {

using tests::ScratchFile;

/// [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4, then the letters a to z: 5 + 2 * i, and
/// continued 6 + 2 * i. A word has one piece for each letter.
inline const text::Tokenizer& letter_tokenizer() {
  static const auto tokenizer = [] {
    std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    for (char c = 'a'; c <= 'z'; ++c) {
      tokens.push_back(std::string(1, c));
      tokens.push_back(std::string("##") + c);
    }
    return text::Tokenizer::from_tokens(tokens);
  }();
  return tokenizer;
}

/// Message of the refusal of a file with this content.
template <typename Read>
std::string refusal(const Read& read, const std::string& content,
                    const std::string& extension = ".txt") {
  const ScratchFile file(content, extension);
  return error_of([&] {
    if constexpr (std::is_invocable_v<Read, std::filesystem::path>)
      read(file.path());
    else
      read(file.path(), IdRule::unique);
  });
}

inline double metric_of(const Evaluation& evaluation, const std::string& name) {
  for (const Metric& metric : evaluation.metrics)
    if (metric.name == name) return metric.value;
  ADD_FAILURE() << "no metric " << name;
  return 0.0;
}

/// Numbers that a few lines of Python repeat: v = (v * 1103515245 + 12345) % 2**31; v >> 16.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : value_(seed) {}
  std::uint64_t next() {
    value_ = (value_ * 1103515245 + 12345) % 2147483648;
    return value_ >> 16;
  }

 private:
  std::uint64_t value_;
};

}  // namespace bertcl::tasks
