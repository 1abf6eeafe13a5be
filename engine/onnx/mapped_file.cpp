// SPDX-License-Identifier: Apache-2.0
// Memory mapping of files.
#include "onnx/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "bertcl/error.hpp"

namespace bertcl::onnx_io {
namespace {

FileStamp stamp_of(const std::filesystem::path& path, const struct stat& info) {
  return {path, info.st_dev, info.st_ino, static_cast<std::uint64_t>(info.st_size),
          info.st_mtim.tv_sec * std::int64_t{1'000'000'000} + info.st_mtim.tv_nsec};
}

}  // namespace

bool FileStamp::is_overwritten() const {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return false;
  const FileStamp now = stamp_of(path, info);
  return now.device == device && now.inode == inode &&
         (now.size != size || now.changed_ns != changed_ns);
}

void check_not_overwritten(std::span<const FileStamp> files) {
  for (const FileStamp& file : files)
    if (file.is_overwritten())
      throw Error(fmt::format("{} was written to after it was loaded, and large tables are read "
                              "from it; load the model again, and replace files by renaming",
                              file.path.string()),
                  ErrorCode::io);
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const auto fail = [&](const char* what) {
    throw Error(fmt::format("{}: {}: {}", path.string(), what, std::strerror(errno)),
                ErrorCode::io);
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // of a pipe, too
  if (file < 0) fail("cannot be opened");
  struct stat info {};
  const bool known = ::fstat(file, &info) == 0;
  if (!known || !S_ISREG(info.st_mode)) {
    ::close(file);
    throw Error(fmt::format("{}: not a regular file", path.string()), ErrorCode::io);
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  void* at = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0) : nullptr;
  const int error = errno;
  ::close(file);
  errno = error;
  if (at == MAP_FAILED) fail("cannot be mapped");
  return std::shared_ptr<const MappedFile>(
      new MappedFile({static_cast<const std::byte*>(at), size}, stamp_of(path, info)));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace bertcl::onnx_io
