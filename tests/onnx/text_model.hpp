// SPDX-License-Identifier: Apache-2.0
// Small ONNX models written as protobuf text.
#pragma once
#include <google/protobuf/text_format.h>

#include <fstream>
#include <string>

#include "bertcl/error.hpp"
#include "onnx/proto.hpp"
#include "onnx/read_model.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::tests {

// Element types as TensorProto numbers them.
constexpr int f32 = 1, u8 = 2, i8 = 3, i32 = 6, i64 = 7, f64 = 11;

/// "name: f32[2, seq]" as an input or output of the graph.
inline void add_value(onnx::ValueInfoProto& value, const std::string& name, int type,
                      const std::vector<std::string>& shape) {
  value.set_name(name);
  auto* tensor = value.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape();
  for (const std::string& d : shape) {
    auto* dim = tensor->mutable_shape()->add_dim();
    if (d.empty()) continue;
    if (std::isdigit(static_cast<unsigned char>(d[0])))
      dim->set_dim_value(std::stoll(d));
    else
      dim->set_dim_param(d);
  }
}

/// A model of the given opset whose graph is protobuf text.
inline onnx::ModelProto model_of(int opset, const std::string& graph) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  auto* o = model.add_opset_import();
  o->set_version(opset);
  auto* m = model.add_opset_import();
  m->set_domain("com.microsoft");
  m->set_version(1);
  if (!google::protobuf::TextFormat::ParseFromString(graph, model.mutable_graph()))
    throw Error("the test's graph is not valid protobuf text");
  return model;
}

inline ir::Graph read(const onnx::ModelProto& model, const onnx_io::ReadOptions& options = {}) {
  const ScratchFolder folder;
  std::ofstream(folder / "m.onnx", std::ios::binary) << model.SerializeAsString();
  return onnx_io::read_model(folder / "m.onnx", options);
}
inline std::string failure(const onnx::ModelProto& model) {
  return error_of([&] { read(model); });
}

}  // namespace bertcl::tests
