// SPDX-License-Identifier: Apache-2.0
// The report of `bertcl inspect`, as text, JSON and HTML.
#pragma once
#include <array>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "plan/report.hpp"
#include "tools/options/model_options.hpp"

namespace bertcl::tools {

/// Encoder layers in a row that consist of the same launches, the first of them, or another
/// section.
struct FoldedSection {
  plan::Section first;
  std::vector<plan::Section> same;  // those after it

  /// "layers 1 to 5 as layer 0"; empty where there are none.
  std::string same_title() const;
};
std::vector<FoldedSection> folded_sections(const plan::Plan& plan);

/// What a node of the file is now.
struct NodeStatusText {
  const char* key;     ///< of their number in "source_nodes"
  const char* status;  ///< in "nodes"
  const char* text;    ///< "3 nodes TEXT"
};
inline constexpr std::array<NodeStatusText, 5> kNodeStatuses = {
    {{"launched", "launched", "are part of the launches above"},
     {"views", "view", "are views (same memory, another shape), or packed on upload"},
     {"constants", "constant", "have constant operands: folded at compile time"},
     {"sizes", "size", "compute sizes, which follow from the input shapes"},
     {"absorbed", "absorbed", "were absorbed by others, or have no effect"}}};

/// The launches by section with their cost for a batch, the sums, the account of the file's nodes
/// and the time of loading.
std::string report_text(const runtime::Session& session, BatchSize size);

/// The time of each phase of loading, in milliseconds.
nlohmann::ordered_json load_times_json(const runtime::LoadTimes& times);

/// The report as JSON, with the cost and the arena of a batch of this size.
nlohmann::ordered_json report_json(const runtime::Session& session, BatchSize size);

/// The same as one HTML page that needs nothing from elsewhere; `steps` are those of its "ops".
std::string inspect_page(const nlohmann::ordered_json& report, std::span<const plan::Step> steps);

}  // namespace bertcl::tools
