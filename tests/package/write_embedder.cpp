// SPDX-License-Identifier: Apache-2.0
// write_embedder FILE: writes a tiny encoder with hidden states, for the example of vectors.
#include <fstream>

#include "tests/tools/tasks_model.hpp"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::ofstream file(arguments[1], std::ios::binary);
  file << bertcl::tests::model_of_tasks();
  return file.flush() ? 0 : 1;
}
