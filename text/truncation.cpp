// SPDX-License-Identifier: Apache-2.0
// One text or two, cut and with their special tokens.
#include "text/truncation.hpp"

namespace bertcl::text {

EncodedInput add_special_tokens(const SpecialTokens& special, Tokens first,
                                std::optional<Tokens> second, std::size_t room,
                                bool truncates_left) {
  EncodedInput all;
  const auto append = [&](Tokens tokens, std::size_t count) {
    const Tokens kept = truncates_left ? tokens.last(count) : tokens.first(count);
    all.ids.insert(all.ids.end(), kept.begin(), kept.end());
    all.cut += tokens.size() - count;
  };
  const auto append_all = [&](Tokens tokens) { append(tokens, tokens.size()); };
  const auto [of_first, of_second] = kept_of_pair(first.size(), second ? second->size() : 0, room);
  all.ids.reserve(of_first + of_second + (second ? special.pair_count() : special.count()));
  append_all(second ? special.pair_before : special.before);
  append(first, of_first);
  append_all(second ? special.pair_between : special.after);
  all.second = all.ids.size();
  if (!second) return all;
  append(*second, of_second);
  append_all(special.pair_after);
  all.second = special.second_begin(all.second, all.ids.size());
  return all;
}

}  // namespace bertcl::text
