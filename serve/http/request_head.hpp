// SPDX-License-Identifier: Apache-2.0
// What the head of a request says, where the HTTP library does not tell or reads it in another way.
#pragma once
#include <httplib.h>
#include <strings.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

#include "support/parse_number.hpp"
#include "text/base/data_file.hpp"

namespace bertcl::serve {

/// What the head of a request says of its body.
enum class BodyFraming { none, content_length, chunked, ambiguous };

/// A body whose end is not clear could hide a second request from a proxy (RFC 9112, 6.3).
inline BodyFraming framing_of(const httplib::Request& request, std::size_t& length) {
  const std::size_t lengths = request.get_header_value_count("Content-Length");
  const std::size_t encodings = request.get_header_value_count("Transfer-Encoding");
  if (lengths + encodings == 0) return BodyFraming::none;
  if (lengths + encodings > 1) return BodyFraming::ambiguous;
  if (encodings == 1) {
    const std::string coding = request.get_header_value("Transfer-Encoding");
    return strcasecmp(coding.c_str(), "chunked") == 0 ? BodyFraming::chunked
                                                      : BodyFraming::ambiguous;
  }
  const auto content_length = parse_number<std::size_t>(request.get_header_value("Content-Length"));
  if (!content_length) return BodyFraming::ambiguous;
  length = *content_length;
  return BodyFraming::content_length;
}

/// A name of a header (RFC 9110, 5.6.2).
inline bool is_token(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  return !name.empty() && std::ranges::all_of(name, fits);
}

/// True for a method that no route has, in a line that is well formed.
inline bool has_other_method(const httplib::Request& request) {
  const auto known = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
  return is_token(request.method) && std::ranges::find(known, request.method) == known.end() &&
         (request.version == "HTTP/1.1" || request.version == "HTTP/1.0");
}

/// Reads the headers again, as they were sent: the library decodes %XX in their values, and passes
/// over lines that a proxy may read in another way ("Content-Length : 9"). Gives what RFC 9112
/// (3.2, 5.1, 5.2) or 9110 (5.5) refuses; null if nothing.
inline const char* read_headers(std::string_view head, httplib::Request& request) {
  request.headers.clear();
  const auto next_line = [&] {
    const std::size_t end = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    return line;
  };
  next_line();  // the request
  for (std::string_view line = next_line(); !line.empty(); line = next_line()) {
    if (line.find_first_of(std::string_view("\0\r\n", 3)) != line.npos)
      return "a line of the head has a NUL, CR or LF character";
    const std::size_t colon = line.find(':');
    if (colon == line.npos || !is_token(line.substr(0, colon))) return "malformed header line";
    const std::string_view value = text::trimmed(line.substr(colon + 1));
    if (!value.empty()) request.headers.emplace(line.substr(0, colon), value);  // as the library
  }
  if (request.version == "HTTP/1.1" && request.get_header_value_count("Host") != 1)
    return "the request must have exactly one non-empty Host header";
  return nullptr;
}

/// Spellings that cpp-httplib decodes: it ignores unknown ones.
constexpr const char* kEncodings[] = {"gzip", "deflate", "br", "identity", ""};

/// True if the body of a request after normalize() can be decoded.
inline bool has_known_encoding(const httplib::Request& request) {
  const std::string encoding = request.get_header_value("Content-Encoding");
  return request.get_header_value_count("Content-Encoding") <= 1 &&
         std::ranges::find(kEncodings, encoding) != std::end(kEncodings);
}

/// True if the client wants no further reply, in a spelling that the library does not know: it
/// takes the header's whole value, in lower case (RFC 9110, 7.6.1 and 9112, 9.3).
inline bool asks_to_close(const httplib::Request& request) {
  const auto [begin, end] = request.headers.equal_range("Connection");
  for (auto header = begin; header != end; ++header) {
    std::istringstream options(header->second);
    for (std::string option; std::getline(options, option, ',');) {
      if (strcasecmp(std::string(text::trimmed(option)).c_str(), "close") == 0) return true;
    }
  }
  return false;
}

/// What the library reads in another way than RFC 9110 and 9112.
inline void normalize(httplib::Request& request) {
  request.ranges.clear();  // no route has parts (9110, 14.2): it would cut any answer
  const auto [begin, end] = request.headers.equal_range("Content-Encoding");
  for (auto header = begin; header != end; ++header) {
    std::string& encoding = header->second;
    if (strcasecmp(encoding.c_str(), "x-gzip") == 0) encoding = "gzip";  // 9110, 8.4.1.3
    for (const char* known : kEncodings)
      if (strcasecmp(encoding.c_str(), known) == 0) encoding = known;
  }
  std::string& path = request.path;
  for (const char* scheme : {"http://", "https://"}) {  // an absolute form (9112, 3.2.2)
    if (strncasecmp(path.c_str(), scheme, std::strlen(scheme)) != 0) continue;
    const std::size_t slash = path.find('/', std::strlen(scheme));
    path = slash == path.npos ? "/" : path.substr(slash);
  }
}

}  // namespace bertcl::serve
