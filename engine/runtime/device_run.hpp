// SPDX-License-Identifier: Apache-2.0
// Runs whose sequences and outputs lie in memory of the device that the caller has.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "opencl/buffer.hpp"

namespace bertcl::runtime {

/// Bytes of a buffer of the session's context.
struct BufferRegion {
  opencl::Buffer buffer;
  std::size_t offset = 0, bytes = 0;
};

/// Sequences with ids and token types as int32 on the device; no buffer: all types are 0.
struct DeviceSequences {
  BufferRegion ids, token_type_ids;
  std::span<const std::int64_t> offsets;
};

/// Device memory by the name of the output that goes there.
using DeviceOutputs = std::map<std::string, BufferRegion, std::less<>>;

}  // namespace bertcl::runtime
