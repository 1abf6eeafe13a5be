// SPDX-License-Identifier: Apache-2.0
// Data files of the tasks. Every reader throws Error that names the file, the line and what is
// expected there.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace bertcl::tasks {

/// A text with its class: 0 is negative, 1 positive.
struct ClassifiedText {
  std::string id;
  std::string text;
  std::int64_t label = 0;
};

/// SST-2: lines of text, tab, 0 or 1. A first line that ends in "label" is a header (GLUE).
/// Ids count the texts from 0.
std::vector<ClassifiedText> read_sst2(const std::filesystem::path& path);

/// Movie reviews (Pang and Lee, polarity data set 2.0): a .zip that holds neg/*.txt and pos/*.txt,
/// or a folder that does; each file is a review. Ids are "neg/cv000_29416.txt". In the order of
/// their names, negative and positive ones in turn, so that the first of them are some of both.
std::vector<ClassifiedText> read_movie_reviews(const std::filesystem::path& path);

/// Two texts and their semantic similarity.
struct ScoredPair {
  std::string id;
  std::string first, second;
  double score = 0.0;  ///< 0 to 5
};

/// STS-B: comma-separated (RFC 4180) texts and score; a .tsv file has tabs and no quotes (GLUE). In
/// a file with a header the columns sentence1, sentence2 and score are taken, in one without it all
/// three. Ids count the pairs from 0.
std::vector<ScoredPair> read_stsb(const std::filesystem::path& path);

/// A sentence in words, each with its tag ("O", "B-person", "I-person").
struct TaggedSentence {
  std::vector<std::string> words;
  std::vector<std::string> tags;
};

/// WNUT17 and other files of that form (CoNLL): a word and its tag on each line, tabs or spaces
/// between, further columns in between ignored; blank lines between sentences. Lines of
/// -DOCSTART- are skipped.
std::vector<TaggedSentence> read_conll(const std::filesystem::path& path);

/// Lines of a text file without the blank ones.
std::vector<std::string> read_lines(const std::filesystem::path& path);

/// Rows of a file of fields with `separator`. `quotes`: a field in double quotes may hold
/// separators and line ends, and "" is a quote. Blank lines are left out.
struct Table {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::size_t> lines;  ///< [rows] from 1: where each begins
};
Table parse_table(std::string_view text, char separator, bool quotes, const std::string& origin);

}  // namespace bertcl::tasks
