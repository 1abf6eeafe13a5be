// SPDX-License-Identifier: Apache-2.0
// Tables of texts and classes, or of pairs and scores: what their headers name, and their rows.
#pragma once
#include <vector>

#include "tasks/readers.hpp"
#include "text/data_file.hpp"

namespace bertcl::tasks {

/// Rows of two texts and a score; under a header the columns that it names.
void read_scored_table(const text::DataFile& file, char separator, std::vector<ScoredPair>& pairs);

/// Rows of a text and its class; under a header that has a column `label` or `labels`, those that
/// it names.
void read_classified_table(const text::DataFile& file, char separator,
                           std::vector<ClassifiedText>& texts);

/// Lines of text, tab, class. A header of more columns than these makes it a table of tabs. The
/// text of a line may hold tabs, unless `is_table` says that its fields stand between them.
void read_classified_lines(const text::DataFile& file, bool is_table,
                           std::vector<ClassifiedText>& texts);

}  // namespace bertcl::tasks
