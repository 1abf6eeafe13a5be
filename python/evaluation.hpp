// SPDX-License-Identifier: Apache-2.0
// The evaluations of the extension module.
#pragma once
#include <nanobind/nanobind.h>

void bind_evaluation(nanobind::module_& m);
