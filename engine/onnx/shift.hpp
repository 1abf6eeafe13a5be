// SPDX-License-Identifier: Apache-2.0
// A tensor moved along an axis of any length.
#pragma once
#include "onnx/importer.hpp"

namespace bertcl::onnx_io {

/// y[.., i, ..] = x[.., i + by, ..] along `axis`, `fill` where that is outside of x; as long as x.
/// Stands for a slice and a pad of equal length: kernels do not have the size between them.
ir::Value* emit_shift(NodeImport& node, ir::Value* x, std::size_t axis, std::int64_t by,
                      ir::Value* fill);

}  // namespace bertcl::onnx_io
