// SPDX-License-Identifier: Apache-2.0
// The table of import rules.
#include "onnx/importer.hpp"
#include "onnx/read_model.hpp"
#include "onnx/rules/all.hpp"
#include "ops/op.hpp"
#include "support/for_each.hpp"

namespace bertcl::onnx_io {

// Each file NAME.cpp of rules/ has the function NAME_rules().
#define BERTCL_DECLARE_RULES(name) Rules name##_rules();
BERTCL_FOR_EACH(BERTCL_DECLARE_RULES, BERTCL_RULE_FILES)

const Rules& rules() {
  static const Rules all = [] {
    Rules r;
#define BERTCL_LIST_RULES(name) name##_rules,
    for (const auto file_rules : {BERTCL_FOR_EACH(BERTCL_LIST_RULES, BERTCL_RULE_FILES)})
      r.merge(file_rules());
    for (const std::string& op : ops::names())
      if (const auto& attributes = ops::find(op)->traits.onnx_attributes)
        r.try_emplace(op, Rule{import_same, {attributes->begin(), attributes->end()}});
    return r;
  }();
  return all;
}

std::vector<std::string> supported_operators() {
  std::vector<std::string> names;
  for (const auto& [name, rule] : rules()) names.push_back(name);
  return names;
}

}  // namespace bertcl::onnx_io
