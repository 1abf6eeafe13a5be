// SPDX-License-Identifier: Apache-2.0
// CoNLL: words with their tags.
#pragma once
#include <vector>

#include "tasks/data/readers.hpp"
#include "text/base/data_file.hpp"

namespace bertcl::tasks {

/// A word and its tag on each line, blank lines between sentences, which are appended.
void read_conll(const text::DataFile& file, std::vector<TaggedSentence>& sentences);

}  // namespace bertcl::tasks
