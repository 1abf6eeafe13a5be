// SPDX-License-Identifier: Apache-2.0
// What the quantizer refuses before it begins. Each function throws Error.
#pragma once

#include <filesystem>

#include "onnx/proto.hpp"
#include "quant/quantizer.hpp"

namespace bertcl::quant {

/// Types and bits of integers that do not go together.
void check_types(const Options& options);

/// A model that was quantized before: what is left of it in float has its reasons.
void check_float(const onnx::GraphProto& graph, const std::filesystem::path& path);

/// Options that have no dynamic form.
void check_dynamic(const Options& options, ActivationScales scales);

}  // namespace bertcl::quant
