// SPDX-License-Identifier: Apache-2.0
// The quantizer of the extension module.
#pragma once
#include <nanobind/nanobind.h>

void bind_quantization(nanobind::module_& m);
