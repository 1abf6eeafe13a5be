// SPDX-License-Identifier: Apache-2.0
// A program outside the project: tokenizes a sentence and lists the devices.
#include <cstdio>

#include "bertcl/error.hpp"
#include "opencl/device.hpp"
#include "text/tokenizer.hpp"

int main(int, char** argv) {
  try {
    const auto tokenizer = bertcl::text::WordPieceTokenizer::from_file(argv[1]);
    for (const auto& token : tokenizer.tokenize("Hello, packages!"))
      std::printf("%s ", token.c_str());
    const auto devices = bertcl::opencl::list_devices();
    for (const auto& device : devices) std::printf("\n%d %s", device.index, device.name.c_str());
    std::printf("\n");
    return tokenizer.tokenize("Hello, packages!").size() == 4 && !devices.empty() ? 0 : 1;
  } catch (const bertcl::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
