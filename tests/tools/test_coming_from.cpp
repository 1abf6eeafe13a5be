// SPDX-License-Identifier: Apache-2.0
// docs/coming-from.md: every command line of it runs, and every switch of the other systems is in
// it.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "program_runner.hpp"
#include "tests/quant/tiny_bert.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::tests {
namespace {

std::string document() {
  std::ifstream file(source_file("docs/coming-from.md"));
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The words of a command line; quotes keep spaces and are left out.
std::vector<std::string> words(const std::string& line) {
  std::vector<std::string> all;
  std::istringstream stream(line);
  for (std::string word; stream >> word;) {
    std::erase(word, '"');
    all.push_back(word);
  }
  return all;
}

std::vector<std::string> command_lines() {
  std::vector<std::string> lines;
  std::istringstream text(document());
  for (std::string line; std::getline(text, line);)
    if (line.starts_with("    bertcl ")) lines.push_back(line);
  return lines;
}

using ComingFrom = FolderTest;

TEST_F(ComingFrom, EveryCommandLineRuns) {
  const auto lines = command_lines();
  ASSERT_GE(lines.size(), 15u);
  {
    std::ofstream model(path("model.onnx"), std::ios::binary);
    quant::tests::TinyBert bert({.vocabulary = 30522});
    ASSERT_TRUE(bert.builder().model().SerializeToOstream(&model));
  }
  std::filesystem::copy_file(source_file("models/minilm-l6-squad/vocab.txt"), path("vocab.txt"));
  write("overrides.json",
        R"({"onnx::MatMul_0": [{"axis": 1, "symmetric": true}],)"
        R"( "onnx::MatMul_1": [{"quant_type": "QInt8", "rmin": -1, "rmax": 1}]})");
  // Data that the project has in place of the training and evaluation sets.
  const std::map<std::string, std::string> data = {
      {"train-v1.1.json", source_file("data/calibration.json")},
      {"dev-v1.1.json", source_file("data/calibration.json")},
      {"dev-v2.0.json", source_file("data/sample-v2.0.json")}};
  for (const std::string& line : lines) {
    auto arguments = words(line);
    arguments.erase(arguments.begin());
    for (auto& argument : arguments) {
      if (const auto it = data.find(argument); it != data.end())
        argument = it->second;
      else if (argument.ends_with(".onnx") || argument.ends_with(".json"))
        argument = path(argument);
    }
    // Several lines write one file.
    if (arguments[0] == "quantize" || arguments[0] == "eval") arguments.emplace_back("--force");
    const ProgramResult result = run_bertcl(arguments);
    EXPECT_EQ(result.code, 0) << line << "\n" << result.err;
  }
  EXPECT_THAT(files(), IsSupersetOf({"prediction.json", "nbest.json", "null-odds.json",
                                     "qordered.onnx", "native.onnx", "all.onnx"}));
}

TEST_F(ComingFrom, EverySwitchHasACounterpart) {
  const std::string text = document();
  for (const char* name :
       {// e2e_migraphx_bert_example.py
        "--fp16", "--int8", "--ep", "--cal_ep", "--model", "--vocab", "--token", "--version",
        "--no_eval", "--ort_verbose", "--verbose", "--ort_quant", "--save_load", "--batch",
        "--seq_len", "--query_len", "--doc_stride", "--cal_num", "--samples",
        // quant_trainer.py
        "--wprec", "--aprec", "--quant-per-tensor", "--quant-disable", "--quant-disable-embeddings",
        "--quant-disable-keyword", "--quant-disable-layer-module", "--quant-enable-layer-module",
        "--calibrator", "--percentile", "--fuse-qkv", "--clip-gelu", "--recalibrate-weights",
        // run_quant_qa.py
        "--model_name_or_path", "--config_name", "--tokenizer_name", "--cache_dir",
        "--model_revision", "--use_auth_token", "--do_calib", "--num_calib_batch", "--save_onnx",
        "--dataset_name", "--dataset_config_name", "--train_file", "--validation_file",
        "--test_file", "--overwrite_cache", "--preprocessing_num_workers", "--max_seq_length",
        "--pad_to_max_length", "--max_train_samples", "--max_eval_samples", "--max_predict_samples",
        "--version_2_with_negative", "--null_score_diff_threshold", "--n_best_size",
        "--max_answer_length",
        // evaluate-hf-trt-qa.py
        "--onnx_model_path", "--output_dir", "--per_device_eval_batch_size", "--seed",
        // qat_bert.py
        "--do_fp32_fine_tune", "--do_fp32_eval", "--do_fp32_export", "--do_fp32_onnx_eval",
        "--do_fp32_all", "--do_qat_fine_tune", "--do_qat_export", "--do_qat_eval", "--do_qat_all",
        "--do_qat_onnx_eval", "--qat_opt_onnx_model"})
    EXPECT_THAT(text, HasSubstr(std::string("`") + name + "`")) << name;
}

}  // namespace
}  // namespace bertcl::tests
