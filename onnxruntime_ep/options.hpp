// SPDX-License-Identifier: Apache-2.0
// The options of the provider, as add_provider_for_devices() takes them.
#pragma once
#include <map>
#include <string>

#include "runtime/session.hpp"

namespace bertcl::onnxruntime_ep {

/// Throws Error naming an option that does not exist, or a value that it does not take.
runtime::SessionOptions read_options(const std::map<std::string, std::string>& options);

}  // namespace bertcl::onnxruntime_ep
