// SPDX-License-Identifier: Apache-2.0
// Options that name files, and the check that no two share one.
#include "tools/options/file_options.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "onnx/model_path.hpp"
#include "onnx/read_model.hpp"
#include "quant/writing/companions.hpp"
#include "support/fail.hpp"
#include "support/pending_file.hpp"
#include "support/same_file.hpp"
#include "tasks/data/readers.hpp"
#include "tools/terminal/output.hpp"

namespace bertcl::tools {
namespace {

namespace fs = std::filesystem;

// Validators of these names mark the options.
constexpr const char* kInput = "input file";
constexpr const char* kModel = "model file";  // kInput, too
constexpr const char* kOutput = "output file";
constexpr const char* kData = "data file";      // kOutput, too
constexpr const char* kReport = "report file";  // kOutput, too
constexpr const char* kPicture = "SVG file";    // kOutput, too

struct NamedFile {
  std::string option;
  fs::path path;
};

bool has_mark(CLI::Option& option, const char* mark) {
  try {
    option.get_validator(mark);
    return true;
  } catch (const CLI::OptionNotFound&) {
    return false;
  }
}

/// As the usage names it: an argument that is an option, too, by its place.
std::string name_of(const CLI::Option& option) { return option.get_name(option.get_positional()); }

/// What the command line gives to the options with this mark.
std::vector<NamedFile> files_of(CLI::App& command, const char* mark) {
  std::vector<NamedFile> files;
  for (CLI::Option* option : command.get_options()) {
    if (!has_mark(*option, mark)) continue;
    for (const std::string& path : option->results())
      if (path != "-") files.push_back({name_of(*option), path});
  }
  return files;
}

/// Adds the external data of the models. What is wrong with a model is said by who reads it.
void add_weights(CLI::App& command, std::vector<NamedFile>& files) {
  for (const NamedFile& model : files_of(command, kModel)) {
    try {
      for (fs::path& file : onnx_io::external_files(model.path))
        files.push_back({model.option, std::move(file)});
    } catch (const Error&) {
    }
  }
}

/// The files beside the models, and beside the vocabulary that --vocab names.
std::vector<NamedFile> files_beside(CLI::App& command) {
  std::vector<NamedFile> owners = files_of(command, kModel), files;
  if (const CLI::Option* vocabulary = command.get_option_no_throw("--vocab"))
    for (const std::string& path : vocabulary->results())
      owners.push_back({vocabulary->get_name(), path});
  for (const NamedFile& owner : owners)
    for (fs::path& file : quant::companion_files(owner.path))
      files.push_back({owner.option, std::move(file)});
  return files;
}

/// Throws Error if a file would be written over one of a folder of texts that is read.
void check_folders(const std::vector<NamedFile>& read, const std::vector<NamedFile>& written) {
  std::error_code error;
  for (const NamedFile& folder : read) {
    if (!fs::is_directory(folder.path, error)) continue;
    for (const NamedFile& file : written) {
      if (!fs::is_regular_file(file.path, error)) continue;
      for (const fs::path& review : tasks::review_files(folder.path))
        if (fs::equivalent(review, file.path, error))
          fail("{} would overwrite {}, which is read as {}; give another file", file.option,
               file.path.string(), folder.option);
    }
  }
}

/// True for a report as JSON, with any blanks, or as HTML.
bool begins_as_report(std::string head) {
  if (head.starts_with("<!DOCTYPE html>") && head.find(" - bertcl</title>") != head.npos)
    return true;
  std::erase_if(
      head, [](char c) { return std::string_view(" \t\r\n").find(c) != std::string_view::npos; });
  return head.starts_with(R"({"schema":"bertcl.)");
}

bool begins_as_picture(const std::string& head) { return head.starts_with("<svg "); }

/// What a report may be written over: an earlier one, or an empty file (mktemp).
template <class Begins>
bool is_empty_or(const fs::path& path, const Begins& begins) {
  std::string head(4096, '\0');
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return false;
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(stream.gcount());
  return head.empty() || begins(head);
}

/// True for a file that would be replaced, not written to as it is.
bool is_replaced(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && !is_special_file(path);
}

/// Throws Error if data would be written over a file, or a report over one that is none.
void check_replaced(CLI::App& command) {
  const auto refuse = [](const NamedFile& file, const char* what) {
    fail("{}: {} already exists and is not {}; name another file, or remove it", file.option,
         file.path.string(), what);
  };
  for (const NamedFile& file : files_of(command, kReport))
    if (is_replaced(file.path) && !is_empty_or(file.path, begins_as_report))
      refuse(file, "a report");
  for (const NamedFile& file : files_of(command, kPicture))
    if (is_replaced(file.path) && !is_empty_or(file.path, begins_as_picture))
      refuse(file, "an SVG picture");
  const CLI::Option* force = command.get_option_no_throw("--force");
  if (force && force->count() > 0) return;
  for (const NamedFile& file : files_of(command, kData))
    if (is_replaced(file.path))
      fail("{}: {} already exists; name another file, or replace it with --force", file.option,
           file.path.string());
}

}  // namespace

CLI::Option* input_file(CLI::Option* option) {
  return option->type_name("FILE")->check(CLI::Validator(
      [](const std::string& path) { return path.empty() ? "the file name is empty" : ""; }, "",
      kInput));
}

CLI::Option* model_file(CLI::Option* option) {
  const auto find = [](std::string& path) -> std::string {
    try {
      path = onnx_io::find_model(path).string();
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  option->check(CLI::Validator([](const std::string&) { return ""; }, "", kModel));
  return input_file(option)->type_name("")->transform(CLI::Validator(find, ""));
}

CLI::Option* output_file(CLI::Option* option, OutputFileKind what) {
  const auto check = [what](const std::string& path) -> std::string {
    if (what == OutputFileKind::report_or_terminal && path == "-") return "";
    try {
      check_writable(path);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  const char* mark = what == OutputFileKind::data      ? kData
                     : what == OutputFileKind::picture ? kPicture
                                                       : kReport;
  option->type_name("FILE")->check(CLI::Validator([](const std::string&) { return ""; }, "", mark));
  return option->check(CLI::Validator(check, "", kOutput));
}

bool names_file(CLI::Option& option) {
  return has_mark(option, kInput) || has_mark(option, kOutput);
}

void add_force_flag(CLI::App& command, bool& force) {
  command.add_flag("--force", force,
                   "Replace existing files; earlier reports are replaced without it");
}

void check_files(CLI::App& command) {
  const std::vector<NamedFile> written = files_of(command, kOutput);
  for (std::size_t i = 0; i < written.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (same_file(written[i].path, written[k].path))
        fail("{} and {} would both write {}; give each its own file", written[k].option,
             written[i].option, written[i].path.string());
  std::vector<NamedFile> read = files_of(command, kInput);
  if (!written.empty()) add_weights(command, read);
  for (const NamedFile& source : read)
    for (const char* suffix : {"", ".data", "_data"})
      for (const NamedFile& file : written)
        if (same_file(source.path.string() + suffix, file.path))
          fail("{} would overwrite {}, which is read as {}; give another file", file.option,
               file.path.string(), source.option);
  check_folders(read, written);
  if (!written.empty())
    for (const NamedFile& source : files_beside(command))
      for (const NamedFile& file : written)
        if (same_file(source.path, file.path))
          fail("{} would overwrite {}, which belongs to {}; give another file", file.option,
               file.path.string(), source.option);
  check_replaced(command);
}

}  // namespace bertcl::tools
