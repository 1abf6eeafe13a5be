// SPDX-License-Identifier: Apache-2.0
// The provider of one ONNX Runtime session.
#pragma once

#include "onnxruntime_ep/ort.hpp"
#include "runtime/session.hpp"

namespace bertcl::onnxruntime_ep {

/// Makes one; ONNX Runtime gives it back to release_provider(). `ort` and `logger` outlive it.
OrtEp* make_provider(const Ort& ort, const OrtLogger* logger, runtime::SessionOptions options);
void release_provider(OrtEp* provider) noexcept;

}  // namespace bertcl::onnxruntime_ep
