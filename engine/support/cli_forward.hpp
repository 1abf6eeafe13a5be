// SPDX-License-Identifier: Apache-2.0
// Classes of CLI11, declared: headers that name them alone need not include it.
#pragma once

namespace CLI {
class App;
class FormatterBase;
class Option;
}  // namespace CLI
