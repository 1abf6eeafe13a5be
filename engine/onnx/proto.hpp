// SPDX-License-Identifier: Apache-2.0
// The protobuf classes of ONNX, with warnings that their headers would give switched off.
#pragma once
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/onnx_pb.h>
#pragma GCC diagnostic pop
