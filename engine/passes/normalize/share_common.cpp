// SPDX-License-Identifier: Apache-2.0
// Nodes that compute the same become one; equal constants of at most a vector's size count as the
// same operand.
//
// A quantizer that gives each consumer its own Q/DQ pair writes the same pair several times: with
// equal scales they are one quantization.
#include <fmt/format.h>

#include <map>

#include "ir/text.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {
namespace {

constexpr std::int64_t kMaxCompared = 16384;  // elements of constants that are compared by value

class Sharer {
 public:
  explicit Sharer(ir::Graph& g) : g_(g) {}

  bool run() {
    share_constants();
    bool changed = false;
    for (ir::Node* node : g_.node_list()) {
      if (node->outputs.empty()) continue;
      const auto [it, added] = first_.emplace(key_of(*node), node);
      if (added) continue;
      ir::Node* first = it->second;
      for (std::size_t i = 0; i < node->outputs.size(); ++i)
        g_.replace_uses(node->outputs[i], first->outputs[i]);
      first->sources = sources_of({first, node});
      g_.erase(node);
      changed = true;
    }
    return changed;
  }

 private:
  void share_constants() {
    std::map<std::string, ir::Value*> known;
    for (ir::Value* c : g_.constants()) {
      const ir::Tensor& t = *c->constant;
      if (t.size() > kMaxCompared) continue;
      std::string key = ir::str(c->type);
      key.append(reinterpret_cast<const char*>(t.bytes().data()), t.bytes().size());
      const auto [it, added] = known.emplace(std::move(key), c);
      if (!added) g_.replace_uses(c, it->second);
    }
  }

  static std::string key_of(const ir::Node& node) {
    std::string key = node.op;
    for (const ir::Value* in : node.inputs) key += fmt::format(" {}", fmt::ptr(in));
    for (const ir::Value* out : node.outputs) key += " " + ir::str(out->type);
    for (const auto& [name, value] : node.attributes) {
      key += fmt::format(" {}=", name);
      std::visit([&](const auto& v) { append(key, v); }, value);
    }
    return key;
  }
  static void append(std::string& key, std::int64_t v) { key += std::to_string(v); }
  static void append(std::string& key, double v) { key += fmt::format("{}f", v); }
  static void append(std::string& key, const std::string& v) { key += "'" + v + "'"; }
  template <class T>
  static void append(std::string& key, const std::vector<T>& list) {
    for (const T& v : list) {
      append(key, v);
      key += ',';
    }
  }

  ir::Graph& g_;
  std::map<std::string, ir::Node*> first_;
};

}  // namespace

Pass share_common() {
  return {"share_common", [](ir::Graph& g) { return Sharer(g).run(); }};
}

}  // namespace bertcl::passes
