// SPDX-License-Identifier: Apache-2.0
// What the evaluations of the public interface share.
#include "api/evaluation.hpp"

#include <nlohmann/json.hpp>

#include "api/session_impl.hpp"
#include "api/tensor_data.hpp"
#include "bertcl/error.hpp"
#include "onnx/read_model.hpp"

namespace bertcl {
namespace {

std::string precision_name(const ModelInfo& info) {
  if (info.int8) return "int8";
  return info.precision == Precision::fp16   ? "fp16"
         : info.precision == Precision::bf16 ? "bf16"
                                             : "fp32";
}

}  // namespace

Sequences unpadded(const text::Batch& batch) {
  Sequences sequences;
  for (std::size_t i = 0; i < batch.input_ids.size(); ++i) {
    if (batch.attention_mask[i] != 0) {
      sequences.ids.push_back(batch.input_ids[i]);
      sequences.token_type_ids.push_back(batch.token_type_ids[i]);
    }
    if ((i + 1) % static_cast<std::size_t>(batch.seq) == 0)
      sequences.offsets.push_back(std::ssize(sequences.ids));
  }
  return sequences;
}

std::vector<float> floats(const Tensor& tensor) {
  const ir::Tensor converted = tensor.data()->tensor.converted(ir::DType::f32);
  const auto values = converted.as<float>();
  return {values.begin(), values.end()};
}

void check_sizes(const ModelInfo& info, const Tokenizer& tokenizer, int max_length) {
  if (info.vocab_size > 0 && tokenizer.model_size() > info.vocab_size)
    throw Error("the tokenizer has " + std::to_string(tokenizer.model_size()) +
                " tokens, the model's embedding table " + std::to_string(info.vocab_size) +
                " rows; use the tokenizer that belongs to this model");
  if (info.max_length > 0 && max_length > info.max_length)
    throw Error("sequences of " + std::to_string(max_length) +
                " tokens exceed the model's maximum of " + std::to_string(info.max_length));
}

std::string report_of(tasks::EvaluationRow row, const Session& session, std::string_view task,
                      const std::filesystem::path& data) {
  row.path = SessionAccess::of(session).path();
  row.precision = precision_name(session.info());
  row.bytes = onnx_io::model_bytes(row.path);
  return dump(tasks::report_of("eval", SessionAccess::of(session).plan().context->info(),
                               {{"data", data.string()},
                                {"task", task},
                                {"models", nlohmann::ordered_json::array({to_json(row)})}}));
}

std::string dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace bertcl
