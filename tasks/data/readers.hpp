// SPDX-License-Identifier: Apache-2.0
// Data files of the tasks, recognized by their content and extension. Every reader throws Error
// that names the file, the line and what is expected there; "-" is standard input. All of them take
// JSON lines (an object a line); ids count the items from 0 where these have no "id".
#pragma once
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bertcl::tasks {

/// Whether two JSON lines of one id are refused, as where ids are the keys of predictions.
enum class IdRule { unique, any };

/// A text, or two, and the name of its class, or of its classes.
struct ClassifiedText {
  std::string id;
  std::string text;
  std::optional<std::string> second;  ///< of a pair
  std::string label;
  std::optional<std::vector<std::string>> labels = {};  ///< where the data have lists of them
  std::size_t line = 0;    ///< of the file, from 1; 0 where it is not one of lines
  bool first_row = false;  ///< of a table whose header, if it has one, was not known
};

/// The labels between the commas of a text, without the blanks around them; none for a blank one.
std::vector<std::string> split_labels(std::string_view text);

/// Lines of text, tab, class (SST-2); the first one that is not blank is a header if it ends in
/// "label" (GLUE). With a header of more columns, or in a .csv (RFC 4180), the columns text,
/// sentence or sentence1, text_pair or sentence2, and label are taken, whatever their case; in JSON
/// lines the members of these names. Without a header rows of a .tsv or .csv have two columns; in
/// other files a text may hold tabs. A column labels has any number of classes, with commas between
/// them; in JSON it is a list. Movie reviews, too: see read_movie_reviews().
std::vector<ClassifiedText> read_classified(const std::filesystem::path& path,
                                            IdRule rule = IdRule::unique);

/// True for a folder or a .zip file, whatever it contains.
bool holds_movie_reviews(const std::filesystem::path& path);

/// Movie reviews (Pang and Lee, polarity data set 2.0) from a folder or .zip file that holds
/// neg/*.txt and pos/*.txt. Each file is a review, its folder the class, its path the id, such as
/// "neg/cv000_29416.txt". Sorted by name within each class, and the classes alternate, so that the
/// first reviews have both.
std::vector<ClassifiedText> read_movie_reviews(const std::filesystem::path& path);

/// The files of a folder that read_movie_reviews() reads.
std::vector<std::filesystem::path> review_files(const std::filesystem::path& folder);

/// Two texts and their semantic similarity.
struct ScoredPair {
  std::string id;
  std::string first, second;
  double score = 0.0;  ///< 0 to 5
};

/// STS-B: comma-separated (RFC 4180) texts and score; a .tsv file has tabs and no quotes (GLUE). In
/// a file with a header the columns text, sentence or sentence1, text_pair or sentence2, and score,
/// else label, are taken, in one without it all three; of JSON lines the members of these names.
std::vector<ScoredPair> read_scored_pairs(const std::filesystem::path& path,
                                          IdRule rule = IdRule::unique);

/// A sentence in words, each with its tag ("O", "B-person", "I-person").
struct TaggedSentence {
  std::vector<std::string> words;
  std::vector<std::string> tags;
  std::string id = {};                  ///< empty: its position
  std::vector<std::size_t> lines = {};  ///< [tags] of the file, from 1; or none
};

/// CoNLL: a word and its tag on each line, tabs or spaces between, further columns in between
/// ignored; blank lines between sentences. Lines of -DOCSTART- are skipped. Of JSON lines tokens
/// and tags (ner_tags).
std::vector<TaggedSentence> read_tagged(const std::filesystem::path& path,
                                        IdRule rule = IdRule::unique);

/// Lines of a text file without the blank ones, or the texts of JSON lines.
std::vector<std::string> read_texts(const std::filesystem::path& path);

/// The key of an item's prediction.
inline std::string key_of(const std::string& id, std::size_t position) {
  return id.empty() ? std::to_string(position) : id;
}

/// A text, and the key of its prediction.
struct NamedText {
  std::string text;
  std::string id = {};  ///< empty: its position
};

/// As read_texts(), with the ids of JSON lines; or the contexts of SQuAD.
std::vector<NamedText> read_named_texts(const std::filesystem::path& path,
                                        IdRule rule = IdRule::unique);

/// Texts without ids.
std::vector<NamedText> without_ids(std::vector<std::string> texts);

/// Any text, or two that a model reads together.
struct TextOrPair {
  std::string text;
  std::optional<std::string> second;
};

/// Lines of a text file, JSON lines with text, and text_pair for two, or the contexts of SQuAD;
/// without the blank ones.
std::vector<TextOrPair> read_texts_or_pairs(const std::filesystem::path& path);

}  // namespace bertcl::tasks
