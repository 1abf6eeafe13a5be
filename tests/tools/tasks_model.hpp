// SPDX-License-Identifier: Apache-2.0
// A tiny model with a head for each task, and commands on it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/quant/tiny_bert.hpp"
#include "tests/tools/program_runner.hpp"

namespace bertcl::tests {

/// SQuAD of three questions about two contexts.
inline const std::string kTwoContexts =
    R"({"version": "1.1", "data": [{"title": "t", "paragraphs": [
    {"context": "Oslo lies in Norway.", "qas": [
      {"id": "x", "question": "Where is Oslo?", "answers": [{"text": "Norway", "answer_start": 13}]},
      {"id": "y", "question": "What lies in Norway?", "answers": [{"text": "Oslo", "answer_start": 0}]}]},
    {"context": "A cat sleeps on the mat.", "qas": [
      {"id": "z", "question": "Who sleeps?", "answers": [{"text": "A cat", "answer_start": 0}]}]}]}]})";

/// TinyBert with three more outputs: [batch, seq, 2] for tags, [batch, 2] for classes, [batch, 1]
/// for the score of two texts; classes and score are read at the first token.
inline std::string model_of_tasks(int vocabulary = 30522) {
  quant::tests::TinyBert bert({.vocabulary = vocabulary});
  quant::tests::GraphBuilder& g = bert.builder();
  const std::string tags = "/qa_outputs/Add_output_0";
  const auto output = [&](const std::string& name, const std::vector<std::string>& symbols,
                          int classes) {
    g.output(name);
    auto* shape = g.graph()
                      .mutable_output(g.graph().output_size() - 1)
                      ->mutable_type()
                      ->mutable_tensor_type()
                      ->mutable_shape();
    for (const std::string& symbol : symbols) shape->add_dim()->set_dim_param(symbol);
    shape->add_dim()->set_dim_value(classes);
  };
  g.node("Gather", {tags, g.ints("first", {0})}, "first_token", {{"axis", 1}});
  g.node("Squeeze", {"first_token", g.ints("axis_1", {1})}, "classes");
  g.node("Gather", {"classes", "first"}, "score", {{"axis", 1}});
  output(tags, {"batch", "seq"}, 2);
  output("classes", {"batch"}, 2);
  output("score", {"batch"}, 1);
  return g.model().SerializeAsString();
}

/// The model with numbers in place of some symbols of its inputs and outputs.
inline std::string with_sizes(const std::string& bytes,
                              const std::map<std::string, std::int64_t>& sizes) {
  onnx::ModelProto model;
  model.ParseFromString(bytes);
  const auto fix = [&](onnx::ValueInfoProto& value) {
    for (auto& dim : *value.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
      if (const auto size = sizes.find(dim.dim_param()); size != sizes.end())
        dim.set_dim_value(size->second);
  };
  for (auto& input : *model.mutable_graph()->mutable_input()) fix(input);
  for (auto& output : *model.mutable_graph()->mutable_output()) fix(output);
  return model.SerializeAsString();
}

class TasksModelTest : public FolderTest {
 protected:
  ProgramResult run(const std::string& command, const std::string& input,
                    const std::vector<std::string>& more = {}) const {
    return run_bertcl(joined({command, model_, "--vocab", kVocabulary}, more), {}, input);
  }
  nlohmann::json json(const std::string& command, const std::string& input,
                      const std::vector<std::string>& more = {}) const {
    return json_of(run(command, input, joined(more, {"--json", "-"})));
  }

  const std::string model_ = write("m.onnx", model_of_tasks());
};

}  // namespace bertcl::tests
