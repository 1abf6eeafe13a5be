// SPDX-License-Identifier: Apache-2.0
// Preloaded, hides AVX-512 and AVX-VNNI of the CPU from PoCL's compiler, which then compiles as for
// CPUs of AVX2 alone: with 16 registers of 256 bits. Stands before LLVM's list of host features
// (LLVM 5 to 18; later ones return it by value, and nothing is hidden).
#include <dlfcn.h>

#include <cstdint>
#include <string_view>

namespace {

/// llvm::StringMap<bool> as it lies in memory: buckets of entries or null, or a tombstone.
struct Features {
  struct Entry {
    std::size_t length;
    bool value;
  };
  Entry** buckets;
  std::uint32_t bucket_count, items, tombstones, entry_size;
};

}  // namespace

// llvm::sys::getHostCPUFeatures(StringMap<bool>&)
#define NAME "_ZN4llvm3sys18getHostCPUFeaturesERNS_9StringMapIbNS_15MallocAllocatorEEE"

extern "C" __attribute__((visibility("default"))) bool host_features(Features& features) __asm__(
    NAME);

bool host_features(Features& features) {
  // LLVM is private to PoCL, the caller, so it is not among the next libraries in order.
  Dl_info caller;
  if (!dladdr(__builtin_return_address(0), &caller)) return false;
  void* library = dlopen(caller.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return false;
  const auto original = reinterpret_cast<bool (*)(Features&)>(dlsym(library, NAME));
  if (!original || !original(features)) return false;
  for (std::uint32_t i = 0; i < features.bucket_count; ++i) {
    Features::Entry* entry = features.buckets[i];
    if (!entry || reinterpret_cast<std::intptr_t>(entry) < 0) continue;  // empty, tombstone
    const std::string_view name(reinterpret_cast<const char*>(entry) + features.entry_size,
                                entry->length);
    if (name.starts_with("avx512") || name.starts_with("avxvnni")) entry->value = false;
  }
  return true;
}
