// SPDX-License-Identifier: Apache-2.0
// Where the files lie that belong to a model.
#pragma once
#include <array>
#include <filesystem>

namespace bertcl::text {

/// What the module Transformer of sentence-transformers reads in its folder: the first of these
/// that is there (`Transformer.load_config` of 6.2.0). Its first releases named it after the model.
inline constexpr std::array kTransformerFiles = {
    "sentence_bert_config.json",       "sentence_roberta_config.json",
    "sentence_distilbert_config.json", "sentence_camembert_config.json",
    "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json"};

/// `name` in the model's folder or, where it is not present (is_present()) and the model is
/// FOLDER/onnx/model.onnx (as on the Hugging Face hub), in FOLDER. The former where it is in
/// neither.
std::filesystem::path companion_file(const std::filesystem::path& model,
                                     const std::filesystem::path& name);

/// True for the path of a folder inside of the model's, as modules.json names them: "1_Pooling".
bool is_inside(const std::filesystem::path& path);

}  // namespace bertcl::text
