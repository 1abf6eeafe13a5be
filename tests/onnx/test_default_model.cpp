// SPDX-License-Identifier: Apache-2.0
// placeholder
#include "onnx/read_model.hpp"
#include "ir/text.hpp"
#include <gtest/gtest.h>
#include <iostream>
#include "tests/support/shared.hpp"
TEST(X, Y) { auto g = bertcl::onnx_io::read_model(bertcl::tests::shared_file("models/minilm-l6-squad/model.onnx")); bertcl::ir::verify(g); std::cout << bertcl::ir::print(g).substr(0, 20000); }
