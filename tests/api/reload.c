// SPDX-License-Identifier: Apache-2.0
// reload LIBRARY: a host of plugins opens, closes and opens the library again.
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char** arguments) {
  if (count != 2) return 2;
  for (int i = 0; i < 2; ++i) {
    void* library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!library || !dlsym(library, "bertcl_version")) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    dlclose(library);
  }
  return 0;
}
