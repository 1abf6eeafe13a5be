// SPDX-License-Identifier: Apache-2.0
// A program outside the project: consumer MODEL_FOLDER tokenizes a sentence and runs the model on
// it.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <vector>

#include "bertcl/error.hpp"
#include "runtime/session.hpp"
#include "text/tokenizer.hpp"

namespace {

int answer(const std::filesystem::path& folder) {
  const auto tokenizer = bertcl::text::WordPieceTokenizer::from_file(folder / "vocab.txt");
  std::vector<std::int64_t> ids{tokenizer.token_id("[CLS]")};
  for (const std::string_view text : {"Who made it?", "It was made by Ada."}) {
    for (const std::int32_t id : tokenizer.encode(text)) ids.push_back(id);
    ids.push_back(tokenizer.token_id("[SEP]"));
  }
  const auto tokens = static_cast<std::int64_t>(ids.size());

  auto session = bertcl::runtime::Session::load(folder / "model.onnx");
  bertcl::runtime::Tensors inputs;
  inputs["input_ids"] = bertcl::ir::Tensor::of<std::int64_t>({1, tokens}, ids);
  const auto outputs = session.run(inputs);
  for (const auto& [name, tensor] : outputs) {
    std::printf("%s", name.c_str());
    for (const float logit : tensor.as<float>()) {
      std::printf(" %.2f", static_cast<double>(logit));
      if (!std::isfinite(logit)) return 1;
    }
    std::printf("\n");
    if (tensor.as<float>().size() != ids.size()) return 1;
  }
  return outputs.size() == 2 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return count == 2 ? answer(arguments[1]) : 2;
  } catch (const bertcl::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
