/* SPDX-License-Identifier: Apache-2.0
 * Preloaded under sanitizers: OpenCL's loader opens drivers by RTLD_DEEPBIND, which would lead them
 * past the functions that a sanitizer intercepts, so that it ends the process.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

void* dlopen(const char* file, int mode) {
  void* (*next)(const char*, int) = (void* (*)(const char*, int))dlsym(RTLD_NEXT, "dlopen");
  return next(file, mode & ~RTLD_DEEPBIND);
}
