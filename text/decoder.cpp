// SPDX-License-Identifier: Apache-2.0
// Which tokens a text is decoded from.
#include "text/decoder.hpp"

#include <utility>
#include <vector>

#include "support/fail.hpp"

namespace bertcl::text {

Decoder::Decoder(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {
  if (const std::vector<std::int32_t> marked = tokenizer_->marked_special(); !marked.empty()) {
    special_.insert(marked.begin(), marked.end());
    return;
  }
  const std::vector<std::int32_t> around = tokenizer_->special().all_ids();
  special_.insert(around.begin(), around.end());
  for (const char* name :
       {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<s>", "</s>", "<pad>", "<unk>", "<mask>"})
    if (const auto id = tokenizer_->find_id(name)) special_.insert(*id);
}

std::string Decoder::operator()(std::span<const std::int64_t> ids, bool skip_special) const {
  std::vector<std::string> tokens;
  for (const std::int64_t id : ids) {
    if (id < 0 || id >= static_cast<std::int64_t>(tokenizer_->vocabulary_size()))
      fail("token id {} is outside the vocabulary of {} tokens", id, tokenizer_->vocabulary_size());
    const auto token = static_cast<std::int32_t>(id);
    if (!skip_special || !special_.contains(token)) tokens.push_back(tokenizer_->token(token));
  }
  return tokenizer_->decode(std::move(tokens));
}

}  // namespace bertcl::text
