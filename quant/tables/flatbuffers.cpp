// SPDX-License-Identifier: Apache-2.0
// onnxruntime's calibration.flatbuffers (trt_table.fbs): one magnitude per tensor.
//
// onnxruntime writes the larger end with its sign, 1 for [-10, 1]; here it is the larger absolute
// value, 10.
#include <trt_table_generated.h>

#include <vector>

#include "bertcl/error.hpp"
#include "quant/tables/table.hpp"

namespace bertcl::quant {
namespace {

bool recognizes_flatbuffers(std::string_view bytes) {
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return fb::VerifyTrtTableBuffer(verifier) && fb::GetTrtTable(bytes.data())->dict() != nullptr;
}

ScaleTable parse_flatbuffers(std::string_view bytes) {
  if (!recognizes_flatbuffers(bytes)) throw Error("not a flatbuffers table, or a damaged one");
  ScaleTable table;
  for (const fb::KeyValue* entry : *fb::GetTrtTable(bytes.data())->dict()) {
    if (!entry->key() || !entry->value()) throw Error("an entry without key or value");
    const std::string tensor = entry->key()->str();
    add_range(table, tensor, symmetric_range(parse_decimal(entry->value()->string_view(), tensor)));
  }
  return table;
}

std::string format_flatbuffers(const ScaleTable& table) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<fb::KeyValue>> entries;
  for (const auto& [tensor, range] : table.ranges) {
    const auto key = builder.CreateString(tensor);
    entries.push_back(
        fb::CreateKeyValue(builder, key, builder.CreateString(decimal(magnitude(range)))));
  }
  builder.Finish(fb::CreateTrtTable(builder, builder.CreateVector(entries)));
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

}  // namespace

const ScaleTableFormat kFlatbuffersTable{"flatbuffers",
                                         ".flatbuffers",
                                         "onnxruntime's calibration.flatbuffers: magnitudes",
                                         true,
                                         recognizes_flatbuffers,
                                         parse_flatbuffers,
                                         format_flatbuffers};

}  // namespace bertcl::quant
