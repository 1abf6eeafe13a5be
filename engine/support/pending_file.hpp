// SPDX-License-Identifier: Apache-2.0
// A file that is written atomically.
#pragma once
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "bertcl/error.hpp"
#include "support/check_path.hpp"

namespace bertcl {

/// Where the links of a name lead. Those of /proc stay: they stand for open files ("/proc/7/fd/1"
/// for /dev/stdout of process 7).
inline std::filesystem::path follow_links(std::filesystem::path path) {
  namespace fs = std::filesystem;
  constexpr int max_links = 40;  // as Linux follows
  std::error_code error;
  for (int links = 0; links < max_links; ++links) {
    const fs::path folder = fs::weakly_canonical(path.parent_path(), error);
    if (error) break;
    path = folder / path.filename();
    if (path.string().starts_with("/proc/") || !fs::is_symlink(path, error)) break;
    path = folder / fs::read_symlink(path, error);
  }
  return path;
}

/// The file that is written under a name: where it is a link, also one that leads to no file yet,
/// its target.
inline std::filesystem::path written_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_symlink(path, ignored) ? follow_links(path) : path;
}

/// True for a device, a pipe, a socket or an open file (/dev/stdout): renaming a file to its name
/// would replace it.
inline bool is_special_file(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  if (follow_links(path).string().starts_with("/proc/")) return true;
  std::error_code ignored;
  const auto status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

/// Opens a special file to write after what it holds. An open file of this process is shared, with
/// its position, so that what is printed later follows. Null, with errno, if that fails.
inline std::FILE* open_special_file(const std::filesystem::path& path) {
  const std::string target = follow_links(path).string();
  const std::string own = "/proc/" + std::to_string(::getpid()) + "/fd/";
  if (!target.starts_with(own)) return std::fopen(path.c_str(), "ab");
  const int copy = ::dup(std::atoi(target.c_str() + own.size()));
  std::FILE* stream = ::fdopen(copy, "wb");
  if (!stream && copy >= 0) {
    const int reason = errno;
    ::close(copy);
    errno = reason;
  }
  return stream;
}

/// For the start of long work. Throws Error that names `path` if no file can be written there.
inline void check_writable(const std::filesystem::path& path) {
  const auto refuse = [&](const std::string& reason) {
    throw Error(path.string() + ": " + reason, ErrorCode::io);
  };
  check_path(path, "output");
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) refuse("is a directory, expected a file");
  if (is_special_file(path)) {  // anyone may write to /dev/stdout, but not to its folder
    if (::access(path.c_str(), W_OK) == 0) return;
    refuse(std::string("cannot write: ") + std::strerror(errno));
  }
  const std::filesystem::path file = written_file(path);
  if (std::filesystem::is_symlink(file, ignored))  // of links that lead to each other
    refuse(std::string("cannot write: ") + std::strerror(ELOOP));
  constexpr std::size_t kLongest = NAME_MAX - std::string_view(".4194304.4294967295.tmp").size();
  if (const std::size_t bytes = file.filename().string().size(); bytes > kLongest)
    refuse("cannot write: its name has " + std::to_string(bytes) + " bytes; the limit is " +
           std::to_string(kLongest) + ", because a temporary suffix is added");
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  // Of a file access() would say that it is not executable, if at all.
  const bool is_file =
      std::filesystem::exists(folder, ignored) && !std::filesystem::is_directory(folder, ignored);
  if (!is_file && ::access(folder.c_str(), W_OK | X_OK) == 0) return;
  const int error = is_file ? ENOTDIR : errno;
  refuse("cannot write: folder " + folder.string() + ": " + std::strerror(error) +
         (error == ENOENT ? "; create it with mkdir -p " + folder.string() : ""));
}

/// Removes the files of a folder whose names `is_left` accepts, those of processes that were
/// killed. Only files an hour old: a process of another machine, whose numbers are not known here,
/// may write to the same folder.
template <class IsLeft>
void remove_abandoned(const std::filesystem::path& folder, const IsLeft& is_left) {
  namespace fs = std::filesystem;
  const auto hour_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (!is_left(entry->path().filename().string())) continue;
    std::error_code ignored;
    if (fs::last_write_time(entry->path(), ignored) <= hour_ago && !ignored)
      fs::remove(entry->path(), ignored);
  }
}

/// Removes FILE.PID.*tmp and FILE.PID.*tmp.data of processes that were killed.
inline void remove_abandoned(const std::filesystem::path& path) {
  const std::string prefix = path.filename().string() + ".";
  remove_abandoned(path.has_parent_path() ? path.parent_path() : ".", [&](std::string_view name) {
    if (!name.starts_with(prefix) || !(name.ends_with("tmp") || name.ends_with("tmp.data")))
      return false;
    int pid = 0;
    const char* end = name.data() + name.size();
    const auto number = std::from_chars(name.data() + prefix.size(), end, pid);
    if (number.ec != std::errc() || pid <= 0 || number.ptr == end || *number.ptr != '.')
      return false;
    return ::kill(pid, 0) != 0 && errno == ESRCH;
  });
}

/// A temporary name beside the final one, for code that opens files itself. Processes and threads
/// that write one file have a name each, and the last to finish wins. What lies there goes unless
/// commit() has renamed it. Where the final name is a link, its target is replaced; a file that is
/// replaced hands on its permissions. What a process that was killed has left there under such a
/// name goes, too.
class PendingName {
 public:
  /// Throws Error if the final name is that of a device, a pipe or a socket.
  explicit PendingName(const std::filesystem::path& path) : path_(written_file(path)) {
    if (is_special_file(path)) fail("it is a device or a pipe, not a file");
    std::error_code ignored;
    if (std::filesystem::is_symlink(path_, ignored)) fail(std::strerror(ELOOP));
    static std::atomic<unsigned> counter{0};
    temporary_ = path_.string() + "." + std::to_string(::getpid()) + "." +
                 std::to_string(counter++) + ".tmp";
    remove_abandoned(path_);
  }
  PendingName(const PendingName&) = delete;
  PendingName& operator=(const PendingName&) = delete;
  ~PendingName() {
    std::error_code ignored;
    if (!committed_) std::filesystem::remove(temporary_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }  ///< the final name
  const std::filesystem::path& temporary() const { return temporary_; }

  /// Gives the temporary file, which is there, the permissions of the one that it replaces.
  void keep_permissions() const {
    std::error_code ignored;
    const auto before = std::filesystem::status(path_, ignored);
    if (std::filesystem::is_regular_file(before))
      std::filesystem::permissions(temporary_, before.permissions() & std::filesystem::perms::all,
                                   ignored);
  }
  /// Throws Error if the file cannot be renamed.
  void commit() {
    keep_permissions();
    std::error_code error;
    std::filesystem::rename(temporary_, path_, error);
    if (error) fail(error.message());
    committed_ = true;
  }
  [[noreturn]] void fail(const std::string& reason) const {
    throw Error(path_.string() + ": cannot write: " + reason, ErrorCode::io);
  }

 private:
  std::filesystem::path path_, temporary_;
  bool committed_ = false;
};

/// A stream to such a name. Every failure is an Error that names the file.
class PendingFile {
 public:
  explicit PendingFile(const std::filesystem::path& path)
      : name_(path), stream_(name_.temporary(), std::ios::binary | std::ios::trunc) {
    if (!stream_) fail();
    name_.keep_permissions();  // before there is anything to read
  }

  const std::filesystem::path& path() const { return name_.path(); }
  std::ofstream& stream() { return stream_; }
  std::int64_t written() { return stream_.tellp(); }
  void close() {
    if (stream_.is_open()) stream_.close();
    if (!stream_) fail();
  }
  void commit() { name_.commit(); }
  [[noreturn]] void fail() const { name_.fail(std::strerror(errno)); }

 private:
  PendingName name_;
  std::ofstream stream_;
};

/// Writes a file whole or not at all; to a device or a pipe (/dev/stdout, a shell's >(...)) as it
/// is, after what was printed. Throws Error that names it.
inline void write_file(const std::filesystem::path& path, const std::string& content) {
  if (is_special_file(path)) {
    std::fflush(stdout);
    std::FILE* stream = open_special_file(path);
    bool written =
        stream && std::fwrite(content.data(), 1, content.size(), stream) == content.size();
    if (stream) written = std::fclose(stream) == 0 && written;
    if (written) return;
    throw Error(path.string() + ": cannot write: " + std::strerror(errno), ErrorCode::io);
  }
  PendingFile file(path);
  file.stream() << content;
  file.close();
  file.commit();
}

}  // namespace bertcl
