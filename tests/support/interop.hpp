// SPDX-License-Identifier: Apache-2.0
// Third-party models with what ONNX Runtime computed.
#pragma once
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/files.hpp"

namespace bertcl::tests {

/// Models below interop/ with the golden file of each, empty where there is none.
inline std::map<std::string, std::string> interop_models() {
  std::map<std::string, std::string> goldens;
  std::ifstream table(shared_file("interop/goldens_status.tsv"));
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    if (line.ends_with('\r')) line.pop_back();
    std::istringstream row(line);
    std::string file, status, golden;
    std::getline(row, file, '\t');
    std::getline(row, status, '\t');
    std::getline(row, golden, '\t');
    goldens[file] = golden;
  }
  return goldens;
}

/// Models whose goldens come from a machine without VNNI: ONNX Runtime's u8 x s8 GEMM by
/// vpmaddubsw saturates sums of two products at 16 bits there, which ONNX does not ask for.
inline const std::set<std::string> saturated_goldens = {
    "C_quantized/onnxruntime-qnn/dynamic_quantize_matmul_int8_bias.onnx",
    "C_quantized/onnxruntime-qnn/matmul_integer_to_float_int8.onnx",
    "C_quantized/onnxruntime-qnn/matmul_integer_to_float_int8_bias.onnx"};

}  // namespace bertcl::tests
