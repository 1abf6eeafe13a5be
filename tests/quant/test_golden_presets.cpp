// SPDX-License-Identifier: Apache-2.0
// Compares what each preset writes for a small BERT and a table of ranges with golden_presets.txt,
// whose diff shows what a change does to int8 files. The last line of a preset is the digest of the
// file.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <array>
#include <string>
#include <string_view>

#include "quant/presets.hpp"
#include "quant/quantizer.hpp"
#include "quant/tables/table.hpp"
#include "support/pending_file.hpp"
#include "support/written_files.hpp"
#include "tests/quant/tiny_bert.hpp"
#include "tests/support/golden_text.hpp"
#include "tests/support/scratch_folder.hpp"
#include "text/base/file.hpp"

namespace bertcl::quant::tests {
namespace {

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  return fmt::format("{:02x}", fmt::join(digest.data(), digest.data() + size, ""));
}

/// A range for each tensor, so that whatever a preset quantizes has one.
ScaleTable ranges_of(const onnx::GraphProto& graph) {
  ScaleTable table{{}, "minmax", 3, 24, std::string(64, 'a')};
  float high = 0.5f;
  const auto add = [&](const std::string& tensor) {
    table.ranges[tensor] = {-0.75f * high, high};
    high += 0.125f;
  };
  for (const auto& tensor : graph.initializer()) add(tensor.name());
  for (const auto& node : graph.node())
    for (const std::string& output : node.output()) add(output);
  return table;
}

/// "0.5", or of several elements how many there are and the digest of all.
std::string text_of(const ir::Tensor& values) {
  if (values.size() == 1 && values.dtype() == ir::DType::f32)
    return fmt::format("{}", values.as<float>().front());
  if (values.size() == 1) return fmt::format("{}", values.to_ints().front());
  const auto bytes = values.bytes();
  return fmt::format(
      "{} {}", values.size(),
      sha256({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).substr(0, 8));
}

/// The operators that quantize or hold integers, with their constants, and how many others there
/// are.
std::string text_of(const Model& model) {
  std::string text;
  int others = 0;
  for (const auto& node : model.graph().node()) {
    const std::string& op = node.op_type();
    const bool quantizes = op.find("Quantize") != std::string::npos || op == "MatMulInteger" ||
                           (op == "DequantizeLinear" && model.initializer(node.input(0)));
    if (!quantizes) {
      ++others;
      continue;
    }
    text += op;
    for (const std::string& input : node.input())
      text += ' ' + (model.initializer(input) ? text_of(model.read(input)) : input);
    text += '\n';
  }
  return text +
         fmt::format("{} other operators, {} weights\n", others, model.graph().initializer_size());
}

class GoldenPresets : public testing::Test {
 protected:
  GoldenPresets() {
    TinyBert bert;
    Model model = Model::of(bert.builder().model(), "tiny");
    model.save(folder_ / "m.onnx");
    const ScaleTable table = ranges_of(model.graph());
    const auto path = folder_ / "table.json";
    write_file(path, table_text(table, table_format("", path)));
  }

  std::string written(Options options, const JobOptions& job) const {
    options.model = folder_ / "m.onnx";
    options.output = folder_ / "q.onnx";
    WrittenFiles files;
    run_job(
        options, job, files, [] {}, [](const Options&) { return Report{}; });
    return text_of(Model::load(options.output)) + sha256(text::read_file(options.output)) + '\n';
  }

  const bertcl::tests::ScratchFolder folder_;
};

TEST_F(GoldenPresets, WriteTheSameBytes) {
  std::string found;
  for (const Preset& preset : presets()) {
    JobOptions job;
    job.read_table = folder_ / "table.json";
    found += fmt::format("# {}\n{}\n", preset.name, written(preset.options(), job));
  }
  for (const bool per_token : {false, true}) {
    JobOptions job;
    job.dynamic = true;
    job.per_token = per_token;
    found += fmt::format("# dynamic{}\n{}\n", per_token ? ", per token" : "",
                         written(presets().front().options(), job));
  }
  bertcl::tests::expect_golden_text(found, "tests/quant/golden_presets.txt");
}

}  // namespace
}  // namespace bertcl::quant::tests
