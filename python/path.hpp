// SPDX-License-Identifier: Apache-2.0
// Names of files between Python and C++: any bytes, as os.fsencode() and os.fsdecode() have them.
#pragma once
#include <nanobind/nanobind.h>

#include <filesystem>
#include <string>
#include <vector>

/// A str argument as the bytes of a file's name; std::string takes valid Unicode alone.
struct Path {
  std::string name;

  operator std::filesystem::path() const { return name; }  // NOLINT: a Path is one
};

inline std::vector<std::filesystem::path> file_names(const std::vector<Path>& paths) {
  return {paths.begin(), paths.end()};
}

namespace nanobind::detail {

template <>
struct type_caster<Path> {
  NB_TYPE_CASTER(Path, const_name("str"))

  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    if (!PyUnicode_Check(source.ptr())) return false;
    const object bytes = steal(PyUnicode_EncodeFSDefault(source.ptr()));
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (!bytes.is_valid() || PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) != 0) {
      PyErr_Clear();
      return false;
    }
    value.name.assign(data, static_cast<std::size_t>(size));
    return true;
  }
  static handle from_cpp(const Path& path, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_DecodeFSDefaultAndSize(path.name.data(),
                                            static_cast<Py_ssize_t>(path.name.size()));
  }
};

}  // namespace nanobind::detail
