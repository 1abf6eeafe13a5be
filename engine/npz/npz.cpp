// SPDX-License-Identifier: Apache-2.0
// Named tensors in NumPy's .npz files, by libzip.
#include "npz/npz.hpp"

#include <fmt/format.h>
#include <zip.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <vector>

#include "bertcl/error.hpp"
#include "npz/npy.hpp"
#include "support/pending_file.hpp"

namespace bertcl::npz {
namespace {

// Deflate shrinks by at most 1032; a directory that claims more lies about a size to allocate.
constexpr std::uint64_t kLargestRatio = 1100;

using Archive = std::unique_ptr<zip_t, decltype(&zip_discard)>;

/// Null where that fails, with the reason.
Archive open_archive(const std::filesystem::path& path, int flags, std::string& reason) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), flags, &code), &zip_discard);
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  reason = code == ZIP_ER_NOENT ? std::string(std::strerror(ENOENT)) : zip_error_strerror(&error);
  zip_error_fini(&error);
  return archive;
}

std::vector<std::byte> read_entry(zip_t* archive, const zip_stat_t& stat,
                                  const std::string& origin) {
  if (stat.size > (stat.comp_size + 64) * kLargestRatio) {
    throw Error(fmt::format("{}: the archive claims {} bytes for this array, stored in {}", origin,
                            stat.size, stat.comp_size));
  }
  const std::unique_ptr<zip_file_t, decltype(&zip_fclose)> file(
      zip_fopen_index(archive, stat.index, 0), &zip_fclose);
  if (!file) throw Error(fmt::format("{}: {}", origin, zip_strerror(archive)));
  std::vector<std::byte> bytes(stat.size);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const zip_int64_t count = zip_fread(file.get(), bytes.data() + done, bytes.size() - done);
    if (count <= 0) throw Error(fmt::format("{}: {}", origin, zip_file_strerror(file.get())));
    done += static_cast<std::size_t>(count);
  }
  // The check sum is compared when the end is read.
  std::byte beyond;
  if (zip_fread(file.get(), &beyond, 1) != 0) {
    throw Error(fmt::format("{}: {}", origin, zip_file_strerror(file.get())));
  }
  return bytes;
}

}  // namespace

Arrays load(const std::filesystem::path& path,
            const std::function<bool(const std::string&)>& wanted) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw Error(fmt::format("{}: is a directory, expected a .npz file", path.string()));
  }
  std::string reason;
  const Archive archive = open_archive(path, ZIP_RDONLY, reason);
  if (!archive) throw Error(fmt::format("{}: cannot open as .npz: {}", path.string(), reason));
  std::map<std::string, zip_stat_t> entries;
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    if (zip_stat_index(archive.get(), static_cast<zip_uint64_t>(i), 0, &stat) != 0) {
      throw Error(fmt::format("{}: {}", path.string(), zip_strerror(archive.get())));
    }
    std::string name = stat.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    if (wanted && !wanted(name)) continue;
    if (!entries.emplace(name, stat).second)
      throw Error(fmt::format("{}: array '{}' occurs twice", path.string(), name));
  }
  Arrays arrays;
  for (const auto& [name, stat] : entries) {
    const std::string origin = fmt::format("{}: array '{}'", path.string(), name);
    arrays.emplace(name, parse_npy(read_entry(archive.get(), stat, origin), origin));
  }
  return arrays;
}

void save(const std::filesystem::path& path, const Arrays& arrays) {
  PendingName file(path);
  std::vector<std::vector<std::byte>> contents;  // libzip reads them when the archive is closed
  contents.reserve(arrays.size());
  for (const auto& [name, tensor] : arrays) {
    try {
      contents.push_back(format_npy(tensor));
    } catch (const Error& error) {
      file.fail(fmt::format("array '{}': {}", name, error.what()));
    }
  }
  std::string reason;
  Archive archive = open_archive(file.temporary(), ZIP_CREATE | ZIP_TRUNCATE, reason);
  if (!archive) file.fail(reason);
  std::size_t next = 0;
  for (const auto& [name, tensor] : arrays) {
    const std::vector<std::byte>& content = contents[next++];
    zip_source_t* source = zip_source_buffer(archive.get(), content.data(), content.size(), 0);
    const zip_int64_t index = zip_file_add(archive.get(), (name + ".npy").c_str(), source,
                                           ZIP_FL_ENC_UTF_8 | ZIP_FL_OVERWRITE);
    if (index < 0) {
      zip_source_free(source);
      file.fail(zip_strerror(archive.get()));
    }
    const auto at = static_cast<zip_uint64_t>(index);
    // NumPy stores uncompressed; 1980-01-01 keeps the bytes free of the time of writing.
    if (zip_set_file_compression(archive.get(), at, ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(archive.get(), at, 0, 0x21, 0) != 0) {
      file.fail(zip_strerror(archive.get()));
    }
  }
  if (arrays.empty()) file.fail("no arrays to write");
  if (zip_close(archive.get()) != 0) file.fail(zip_strerror(archive.get()));
  static_cast<void>(archive.release());
  file.commit();
}

}  // namespace bertcl::npz
