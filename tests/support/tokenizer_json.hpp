// SPDX-License-Identifier: Apache-2.0
// A tokenizer.json as transformers saves BERT's.
#pragma once
#include <nlohmann/json.hpp>

namespace bertcl::tests {

/// As BertTokenizer(vocab=..).save_pretrained() of transformers 5.23.0 writes it, flags of added
/// tokens left out: [PAD], [UNK], [CLS] and [SEP] have the ids 0 to 3, `words` are added to them.
inline nlohmann::json bert_tokenizer_json(const nlohmann::json& words) {
  nlohmann::json file = nlohmann::json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 0, "content": "[PAD]", "special": true},
                     {"id": 1, "content": "[UNK]", "special": true},
                     {"id": 2, "content": "[CLS]", "special": true},
                     {"id": 3, "content": "[SEP]", "special": true}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                   "strip_accents": null, "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 100,
              "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}}})");
  file["model"]["vocab"].update(words);
  return file;
}

}  // namespace bertcl::tests
