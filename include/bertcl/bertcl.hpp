// SPDX-License-Identifier: Apache-2.0
// The C++ interface of bertcl.
#pragma once
#include "bertcl/embed.hpp"
#include "bertcl/error.hpp"
#include "bertcl/evaluate.hpp"
#include "bertcl/model_settings.hpp"
#include "bertcl/quantize.hpp"
#include "bertcl/sequences.hpp"
#include "bertcl/session.hpp"
#include "bertcl/tensor.hpp"
#include "bertcl/version.hpp"
