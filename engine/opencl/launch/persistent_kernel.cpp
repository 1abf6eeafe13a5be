// SPDX-License-Identifier: Apache-2.0
// The program of the persistent kernel: one part per variant of a kernel file, and the text of
// kernels_cl/persistent/persistent.cl.
#include "opencl/launch/persistent_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bertcl/error.hpp"
#include "opencl/base/cl.hpp"
#include "support/ceil_div.hpp"

namespace bertcl::opencl {
namespace {

#if defined(__x86_64__)
constexpr int kX86 = 1;
#else
constexpr int kX86 = 0;
#endif

constexpr size_t kAddressesAtATime = 8;  // of kernels_cl/persistent/addresses.cl

}  // namespace

void append_step(std::vector<std::uint64_t>& words, const PersistentStep& step) {
  const size_t end = words.size() + kStepWords;
  words.insert(words.end(), {step.kernel, step.first_item});
  words.insert(words.end(), step.grid.begin(), step.grid.end());
  words.insert(words.end(), step.arguments.begin(), step.arguments.end());
  if (words.size() > end)
    throw Error(fmt::format("a step has {} arguments; the persistent kernel takes at most {}",
                            step.arguments.size(), kStepWords - kStepHeader));
  words.resize(end);
}

Kernel persistent_kernel_of(Context& context, std::span<const Kernel> kernels, Defines defines) {
  defines["X86"] = kX86;
  std::vector<LinkedPart> parts{{"persistent", std::move(defines), ""}};
  std::string steps;
  for (size_t number = 0; number < kernels.size(); ++number) {
    const Kernel& kernel = kernels[number];
    auto part = std::ranges::find_if(parts, [&](const LinkedPart& p) {
      return p.program == kernel.program_name() && p.defines == kernel.defines();
    });
    if (part == parts.end()) {
      const std::string suffix = fmt::format(" -DMERGED_SUFFIX=_in_part_{}", parts.size());
      part = parts.insert(part, {kernel.program_name(), kernel.defines(), suffix});
    }
    steps += fmt::format("STEP({},{}_in_part_{})", number, kernel.name(), part - parts.begin());
  }
  parts.front().more_options = " -DSTEPS=" + steps;
  return context.linked_kernel("persistent", "persistent", parts);
}

std::vector<std::uint64_t> addresses_of(Context& context, std::span<const Buffer* const> buffers) {
  std::vector<std::uint64_t> addresses(buffers.size());
  if (buffers.empty()) return addresses;
  const size_t launches = ceil_div(buffers.size(), kAddressesAtATime);
  Buffer found = context.allocate(launches * kAddressesAtATime * sizeof(std::uint64_t));
  Kernel kernel = context.unbuilt_kernel("addresses", "addresses");
  Queue queue(context.native(), context.native_device(), nullptr, &context.queue());
  for (size_t first = 0; first < buffers.size(); first += kAddressesAtATime) {
    for (size_t i = 0; i < kAddressesAtATime; ++i) {
      const bool any = first + i < buffers.size() && *buffers[first + i];
      kernel.set(static_cast<unsigned>(i),
                 any ? KernelArgument(*buffers[first + i]) : KernelArgument());
    }
    kernel.set(kAddressesAtATime, found);
    kernel.set(kAddressesAtATime + 1, static_cast<std::int32_t>(first));
    queue.launch(kernel, {1, 1, 1}, {1, 1, 1}, "addresses");
  }
  check(clEnqueueReadBuffer(queue.native(), found.native(), CL_TRUE, 0,
                            addresses.size() * sizeof(std::uint64_t), addresses.data(), 0, nullptr,
                            nullptr),
        "addresses of buffers");
  return addresses;
}

}  // namespace bertcl::opencl
