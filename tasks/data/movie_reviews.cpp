// SPDX-License-Identifier: Apache-2.0
// Movie reviews in a .zip, by libzip, or in a folder.
#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "bertcl/error.hpp"
#include "support/fail.hpp"
#include "tasks/data/readers.hpp"
#include "text/base/file.hpp"
#include "text/base/unicode.hpp"

namespace bertcl::tasks {
namespace {

// A review has a few thousand bytes: an entry that claims more than this is damaged.
constexpr std::uint64_t kLongestReview = 1 << 24;

bool is_review(const std::filesystem::path& name) {
  // macOS puts "__MACOSX/neg/._cv000.txt" beside each file of an archive.
  if (name.extension() != ".txt" || name.filename().string().starts_with(".")) return false;
  const std::filesystem::path folder = name.parent_path().filename();
  return folder == "neg" || folder == "pos";
}

/// Reviews by id, of one class each.
using Reviews = std::map<std::string, std::string>;
struct BothClasses {
  Reviews negative, positive;

  /// The reviews that those of `name` ("movie_reviews/neg/cv000.txt") belong to; null: no review.
  Reviews* of(const std::filesystem::path& name) {
    if (!is_review(name)) return nullptr;
    return name.parent_path().filename() == "neg" ? &negative : &positive;
  }
};

std::string id_of(const std::filesystem::path& name) {
  return (name.parent_path().filename() / name.filename()).string();
}

void add(Reviews& reviews, const std::filesystem::path& name, std::string text,
         const std::filesystem::path& origin) {
  const std::string id = id_of(name);
  if (!reviews.emplace(id, std::move(text)).second)
    fail(
        "{}: two reviews are named '{}', one of them is '{}'; give a folder that has "
        "one neg and one pos folder below it",
        origin.string(), id, name.string());
}

std::string read_entry(zip_t* archive, const zip_stat_t& stat, const std::string& origin) {
  if (stat.size > kLongestReview)
    fail("{}: {} bytes uncompressed; a review has at most {}", origin, stat.size, kLongestReview);
  const std::unique_ptr<zip_file_t, decltype(&zip_fclose)> file(
      zip_fopen_index(archive, stat.index, 0), &zip_fclose);
  if (!file) fail("{}: {}", origin, zip_strerror(archive));
  std::string bytes(stat.size + 1, '\0');  // one more: the check sum is compared at the end
  std::size_t done = 0;
  for (zip_int64_t count = 0;
       (count = zip_fread(file.get(), bytes.data() + done, bytes.size() - done)) != 0;) {
    if (count < 0) fail("{}: {}", origin, zip_file_strerror(file.get()));
    done += static_cast<std::size_t>(count);
  }
  if (done != stat.size) throw Error(origin + ": its length differs from the one in the archive");
  bytes.resize(done);
  return bytes;
}

void read_archive(const std::filesystem::path& path, BothClasses& reviews) {
  int code = 0;
  const std::unique_ptr<zip_t, decltype(&zip_discard)> archive(
      zip_open(path.c_str(), ZIP_RDONLY, &code), &zip_discard);
  if (!archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    fail("{}: cannot open as .zip: {}; expected a .zip or folder with neg/*.txt and pos/*.txt",
         path.string(), reason);
  }
  const zip_int64_t entries = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < entries; ++i) {
    zip_stat_t stat;
    if (zip_stat_index(archive.get(), static_cast<zip_uint64_t>(i), 0, &stat) != 0)
      fail("{}: {}", path.string(), zip_strerror(archive.get()));
    if (Reviews* own = reviews.of(stat.name))
      add(*own, stat.name,
          read_entry(archive.get(), stat, fmt::format("{}: '{}'", path.string(), stat.name)), path);
  }
}

}  // namespace

bool holds_movie_reviews(const std::filesystem::path& path) {
  std::error_code none;
  if (path.extension() == ".zip" || std::filesystem::is_directory(path, none)) return true;
  // Peeking would consume the first bytes of a pipe.
  if (path == "-" || !std::filesystem::is_regular_file(path, none)) return false;
  char begin[4] = {};
  std::ifstream file(path, std::ios::binary);
  return file.read(begin, 4) && std::string_view(begin, 4) == "PK\x03\x04";
}

std::vector<std::filesystem::path> review_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (is_review(entry.path())) files.push_back(entry.path());
  return files;
}

std::vector<ClassifiedText> read_movie_reviews(const std::filesystem::path& path) {
  BothClasses reviews;
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) {
    for (const std::filesystem::path& file : review_files(path))
      add(*reviews.of(file), file, text::read_file(file), path);
  } else {
    read_archive(path, reviews);
  }
  for (const Reviews* side : {&reviews.negative, &reviews.positive})
    for (const auto& [id, text] : *side)
      if (const auto bad = text::first_ill_formed(text))
        fail("{}: '{}': invalid UTF-8 at byte {} of {}", path.string(), id, *bad, text.size());
  std::vector<ClassifiedText> texts;
  auto negative = reviews.negative.begin();
  auto positive = reviews.positive.begin();
  while (negative != reviews.negative.end() || positive != reviews.positive.end()) {
    if (negative != reviews.negative.end()) {
      texts.push_back({negative->first, std::move(negative->second), std::nullopt, "neg"});
      ++negative;
    }
    if (positive != reviews.positive.end()) {
      texts.push_back({positive->first, std::move(positive->second), std::nullopt, "pos"});
      ++positive;
    }
  }
  if (texts.empty()) throw Error(path.string() + ": contains no reviews (neg/*.txt, pos/*.txt)");
  return texts;
}

}  // namespace bertcl::tasks
