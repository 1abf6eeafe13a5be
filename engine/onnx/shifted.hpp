// SPDX-License-Identifier: Apache-2.0
// A tensor moved along an axis of any length.
#pragma once
#include "onnx/importer.hpp"

namespace bertcl::onnx_io {

/// y[.., i, ..] = x[.., i + by, ..] along `axis`, `fill` where that is outside of x; as long as x.
/// A slice and a padding of the same number of elements do so, whose sizes in between kernels do
/// not know.
ir::Value* shifted(NodeImport& node, ir::Value* x, std::size_t axis, std::int64_t by,
                   ir::Value* fill);

}  // namespace bertcl::onnx_io
