// SPDX-License-Identifier: Apache-2.0
// Parser of the text form: recursive descent over characters, errors with line and column.
#include "tests/support/parse_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "bertcl/error.hpp"

namespace bertcl::ir {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Graph run() {
    expect("graph");
    graph_.name = word("graph name");
    expect("(");
    while (!accept(")")) {
      const auto [name, type] = typed();
      define(name, graph_.add_input(name, type));
      accept(",");
    }
    expect("{");
    while (!accept("return")) statement();
    do {
      Value* value = use();
      std::string name = value->name;
      if (accept("as")) name = word("output name");
      graph_.add_output(name, value);
    } while (accept(","));
    expect("}");
    skip();
    if (position_ != text_.size()) fail("text after the end of the graph");
    return std::move(graph_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    const std::string_view before = text_.substr(0, position_);
    const auto line = 1 + std::ranges::count(before, '\n');
    const auto start = before.rfind('\n');
    const auto column = position_ - (start == std::string_view::npos ? 0 : start + 1) + 1;
    throw Error(fmt::format("graph text, line {}, column {}: {}", line, column, what));
  }

  void skip() {
    while (position_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[position_])))
        ++position_;
      else if (text_.substr(position_, 2) == "//")
        position_ = std::min(text_.find('\n', position_), text_.size());
      else
        break;
    }
  }
  static bool in_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_./:-*+?@$<>~|;#'&!^\\").find(c) != std::string_view::npos;
  }
  bool accept(std::string_view token) {
    skip();
    if (text_.substr(position_, token.size()) != token) return false;
    const std::size_t end = position_ + token.size();
    if (in_word(token.back()) && end < text_.size() && in_word(text_[end])) return false;
    position_ = end;
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail(fmt::format("expected '{}'", token));
  }
  std::string word(std::string_view what) {
    skip();
    std::size_t end = position_;
    while (end < text_.size() && in_word(text_[end])) ++end;
    if (end == position_) fail(fmt::format("expected {}", what));
    std::string w(text_.substr(position_, end - position_));
    position_ = end;
    return w;
  }
  std::string value_name() {
    skip();
    if (position_ >= text_.size() || text_[position_] != '%') fail("expected a value '%name'");
    ++position_;
    std::string name = word("value name");
    if (name.size() > 1 && name.back() == ':') {  // "%x: f32[...]"
      name.pop_back();
      --position_;
    }
    return name;
  }

  std::pair<std::string, Type> typed() {
    std::string name = value_name();
    expect(":");
    return {name, type()};
  }
  Type type() {
    skip();
    std::size_t end = position_;
    while (end < text_.size() && std::isalnum(static_cast<unsigned char>(text_[end]))) ++end;
    const auto dtype = dtype_from_name(text_.substr(position_, end - position_));
    if (!dtype) fail("expected an element type (f32, u8, i64, ...)");
    position_ = end;
    Type t{*dtype, {}};
    expect("[");
    while (!accept("]")) {
      const std::string w = word("an extent");
      const auto dim = Dim::parse(w);
      if (!dim) fail(fmt::format("'{}' is not an extent", w));
      t.shape.push_back(*dim);
      accept(",");
    }
    return t;
  }

  void define(const std::string& name, Value* value) {
    if (!values_.emplace(name, value).second) fail(fmt::format("'%{}' is defined twice", name));
  }
  Value* use() {
    if (accept("_")) return nullptr;
    const std::string name = value_name();
    const auto it = values_.find(name);
    if (it == values_.end()) fail(fmt::format("'%{}' is not defined above", name));
    return it->second;
  }

  double number() {
    skip();
    const std::string rest(text_.substr(position_, 64));
    char* end = nullptr;
    const double v = std::strtod(rest.c_str(), &end);
    if (end == rest.c_str()) fail("expected a number");
    position_ += static_cast<std::size_t>(end - rest.c_str());
    return v;
  }

  Tensor constant(const Type& t) {
    const auto sizes = constant_shape(t.shape);
    if (!sizes) fail("the shape of a constant must be numbers");
    std::vector<double> values(element_count(*sizes), 0.0);
    if (accept("...")) {
    } else if (accept("splat")) {
      std::ranges::fill(values, number());
    } else if (accept("[")) {
      std::size_t n = 0;
      while (!accept("]")) {
        if (n == values.size()) fail("more values than the shape holds");
        values[n++] = number();
        accept(",");
      }
      if (n != values.size()) fail("fewer values than the shape holds");
    } else {
      if (values.size() != 1) fail("one value was given for a constant of several");
      values[0] = number();
    }
    return Tensor::of(*sizes, std::move(values)).converted(t.dtype);
  }

  Attribute attribute() {
    skip();
    if (accept("\"")) {
      const auto end = text_.find('"', position_);
      if (end == std::string_view::npos) fail("unterminated string");
      std::string s(text_.substr(position_, end - position_));
      position_ = end + 1;
      return s;
    }
    const bool floats = text_.substr(position_, 2) == "f[";
    if (floats) ++position_;
    if (accept("[")) {
      std::vector<double> list;
      while (!accept("]")) {
        list.push_back(number());
        accept(",");
      }
      if (floats) return list;
      return std::vector<std::int64_t>(list.begin(), list.end());
    }
    const std::size_t start = position_;
    const double v = number();
    const std::string_view token = text_.substr(start, position_ - start);
    if (token.find_first_of(".eni") != std::string_view::npos) return v;
    return static_cast<std::int64_t>(std::strtoll(std::string(token).c_str(), nullptr, 10));
  }

  void statement() {
    if (accept("const")) {
      const auto [name, type] = typed();
      expect("=");
      define(name, graph_.add_constant(name, constant(type)));
      return;
    }
    std::vector<Graph::Result> results;
    skip();
    while (position_ < text_.size() && text_[position_] == '%') {
      auto [name, type] = typed();
      results.push_back({std::move(name), std::move(type)});
      if (accept("=")) break;
      expect(",");
      skip();
    }
    std::string op = word("an operator");
    expect("(");
    std::vector<Value*> inputs;
    while (!accept(")")) {
      inputs.push_back(use());
      accept(",");
    }
    Attributes attributes;
    if (accept("{"))
      while (!accept("}")) {
        std::string key = word("an attribute name");
        expect("=");
        attributes.emplace(std::move(key), attribute());
        accept(",");
      }
    std::vector<std::string> names;
    for (const auto& r : results) names.push_back(r.name);
    const Node* node = graph_.add_node(std::move(op), std::move(inputs), std::move(attributes),
                                       std::move(results));
    for (std::size_t i = 0; i < names.size(); ++i) define(names[i], node->outputs[i]);
  }

  std::string_view text_;
  std::size_t position_ = 0;
  Graph graph_;
  std::map<std::string, Value*> values_;
};

}  // namespace

Graph parse(std::string_view text) { return Parser(text).run(); }

}  // namespace bertcl::ir
