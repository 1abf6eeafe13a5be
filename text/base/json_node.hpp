// SPDX-License-Identifier: Apache-2.0
// A position in a JSON document that knows its path.
#pragma once
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace bertcl::text {

/// A value of a document and the way to it. Refers to the document, its origin and the hint, which
/// must outlive it. What is missing or of another type is an Error that names origin and path:
/// "dev.json: data[0].title is of type null, expected string; HINT". An empty origin is omitted:
/// the caller names the file.
class JsonNode {
 public:
  explicit JsonNode(const nlohmann::json& document, std::string_view origin = {},
                    std::string_view hint = {});

  [[noreturn]] void fail(const std::string& what) const;
  template <class First, class... Rest>
  [[noreturn]] void fail(fmt::format_string<First, Rest...> what, First&& first,
                         Rest&&... rest) const {
    fail(fmt::format(what, std::forward<First>(first), std::forward<Rest>(rest)...));
  }

  /// The same with a message that names the place itself: "dev.json: WHAT; HINT".
  [[noreturn]] void fail_naming(const std::string& what) const;

  const nlohmann::json& value() const { return *value_; }
  const std::string& path() const { return path_; }  ///< "data[0].title"; empty: the document

  /// A member of an object.
  JsonNode at(std::string_view key) const;
  /// The same; none where it is absent or null.
  std::optional<JsonNode> find(std::string_view key) const;
  /// A boolean member; `default_value` where it is absent or null.
  bool flag(std::string_view key, bool default_value) const;
  /// An element of an array, which must be long enough.
  JsonNode element(std::size_t index) const;
  /// Calls visit(element) for each element of an array.
  void each(const std::function<void(const JsonNode&)>& visit) const;
  /// Calls visit(key, member) for each member of an object.
  void each_member(const std::function<void(const std::string&, const JsonNode&)>& visit) const;

  const std::string& string() const;
  bool boolean() const;
  std::int64_t integer() const;
  double number() const;

 private:
  JsonNode(const nlohmann::json& value, const JsonNode& parent, std::string path);
  void expect(bool right, std::string_view type) const;
  std::string path_of(std::string_view key) const;

  const nlohmann::json* value_;
  std::string_view origin_, hint_;
  std::string path_;
};

}  // namespace bertcl::text
