// SPDX-License-Identifier: Apache-2.0
// Tables of texts and classes, or of pairs and scores: what their headers name, and their rows.
#pragma once
#include <vector>

#include "tasks/data/readers.hpp"
#include "text/base/data_file.hpp"

namespace bertcl::tasks {

/// Rows of two texts and a score, with commas unless the form is tabs; under a header the columns
/// that it names.
void read_scored_table(const text::DataFile& file, std::vector<ScoredPair>& pairs);

/// Rows of a text and its class; under a header that has a column `label` or `labels`, those that
/// it names.
void read_classified_table(const text::DataFile& file, char separator,
                           std::vector<ClassifiedText>& texts);

/// Lines of text, tab, class. A header of more columns than these makes it a table of tabs. The
/// text of a line may hold tabs, unless the form is tabs.
void read_classified_lines(const text::DataFile& file, std::vector<ClassifiedText>& texts);

}  // namespace bertcl::tasks
