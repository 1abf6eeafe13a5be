// SPDX-License-Identifier: Apache-2.0
// Scale tables: ranges of tensors in the files of this and of other quantizers.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "quant/calibration/parameters.hpp"

namespace bertcl::quant {

/// The result of calibrating a model.
struct ScaleTable {
  std::map<std::string, Range> ranges;  ///< by tensor
  // The origin of the ranges; empty and 0 if the format does not store it.
  std::string method;
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  std::string data_sha256;
};

/// One format of files. Formats of `magnitudes` store the larger absolute value of both ends: a
/// range -a .. a is read from them.
struct ScaleTableFormat {
  std::string_view name;       ///< as on the command line
  std::string_view extension;  ///< with its dot; the first format of an extension is written for it
  std::string_view summary;    ///< one line
  bool magnitudes = false;
  /// Also for damaged content, if its beginning shows the format.
  bool (*recognizes)(std::string_view bytes);
  /// Throws Error on damage; the file is named by the caller.
  ScaleTable (*parse)(std::string_view bytes);
  std::string (*format)(const ScaleTable& table);
};

/// All formats, in the order in which a file is tried.
std::span<const ScaleTableFormat> table_formats();
/// The format of that name or, if it is empty, of the extension of the path. Throws Error with the
/// list of formats.
const ScaleTableFormat& table_format(std::string_view name, const std::filesystem::path& path);

/// A table and how it was stored.
struct ReadTable {
  ScaleTable table;
  const ScaleTableFormat* format = nullptr;
};

/// Reads a file in the format that its content shows. Throws Error that names file and tensor: an
/// unknown format, a non-finite or inverted range, a tensor listed twice, or no tensor at all.
ReadTable read_table(const std::filesystem::path& path);

/// The content of its file.
std::string table_text(const ScaleTable& table, const ScaleTableFormat& format);

/// As Python prints the float widened to double: the shortest text that reads back the same, with a
/// point or an exponent.
std::string decimal(float value);
/// Parses the whole text as a number. Throws Error if it is not one.
float parse_decimal(std::string_view text, const std::string& tensor);

/// Adds a tensor. Throws Error if it is already there.
void add_range(ScaleTable& table, const std::string& tensor, Range range);

/// Throws Error where a name does not fit in a line of a text format.
void check_one_line(const std::string& tensor);
/// Throws Error where a name does not fit in JSON.
void check_utf8(const std::string& tensor);

// One file each.
extern const ScaleTableFormat kJsonTable;
extern const ScaleTableFormat kOnnxruntimeTable;
extern const ScaleTableFormat kFlatbuffersTable;
extern const ScaleTableFormat kTensorrtTable;
extern const ScaleTableFormat kTextTable;

}  // namespace bertcl::quant
