// SPDX-License-Identifier: Apache-2.0
// What a server under test holds: memory, descriptors, threads.
#pragma once
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>

#include "tests/serve/clients.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();  // GCC has no header for it
#define BERTCL_SANITIZED 1
#else
#define BERTCL_SANITIZED 0
#endif

namespace bertcl::serve::tests {

/// MB that may be allocated beyond those at first: 16 kB for each of a thousand requests.
constexpr double kMaxGrowth = 16;

/// MB that are allocated and not freed, whatever the allocator keeps.
inline double allocated_mb() {
#if BERTCL_SANITIZED
  return static_cast<double>(__sanitizer_get_current_allocated_bytes()) / 1e6;
#else
  const auto info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd) / 1e6;
#endif
}

inline std::ptrdiff_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

/// What a server holds while nobody asks for anything.
class Holdings {
 public:
  /// `server_threads`: that the server may start for connections.
  Holdings(TestServer& server, std::ptrdiff_t server_threads)
      : server_(server), threads_(entries("/proc/self/task") + server_threads) {}
  /// Fails the test if there is more than at first.
  void check() const {
    const Batcher& batcher = server_.service().models().front()->batcher();
    EXPECT_TRUE(eventually([&] { return batcher.depth().requests == 0; }));
    EXPECT_EQ(batcher.depth().tokens, 0u);
    EXPECT_TRUE(eventually([&] { return entries("/proc/self/fd") <= files_; }))
        << entries("/proc/self/fd") << " files are open, " << files_ << " at first";
    EXPECT_LE(entries("/proc/self/task"), threads_);
    EXPECT_TRUE(eventually([&] { return allocated_mb() < memory_ + kMaxGrowth; }))
        << allocated_mb() << " MB, " << memory_ << " MB at first";
  }

 private:
  TestServer& server_;
  std::ptrdiff_t files_ = entries("/proc/self/fd"), threads_;
  double memory_ = allocated_mb();
};

/// The status of /embed, and its reply.
inline std::string answer(const TestServer& server, const std::string& body) {
  const auto reply = server.client().Post("/embed", body, kJson);
  return reply ? std::to_string(reply->status) + ' ' + reply->body : "no reply";
}

}  // namespace bertcl::serve::tests
