// SPDX-License-Identifier: Apache-2.0
// The key that requests have to show.
#pragma once
#include <string>

namespace bertcl::serve {

/// What keeps a text from being a key, for a message; "" for a key that a header can hold.
std::string key_error(const std::string& key);

/// True if a header "Authorization: Bearer KEY" shows the key; compares in constant time.
bool has_key(const std::string& authorization, const std::string& key);

}  // namespace bertcl::serve
