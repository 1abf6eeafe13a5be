// SPDX-License-Identifier: Apache-2.0
// bertcl-probe INDEX NAME [PROBE...]: runs the probes of a device, except those named, for another
// process (probe_process.cpp), which outlives what a driver does here.
//
// It writes to file 3: a line "begin PROBE" before each of them, in the end "found" and the lines
// of to_text(). Exit code 3: the device at INDEX is not NAME, 4: it cannot be opened.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "opencl/context.hpp"
#include "opencl/probe/probe.hpp"

namespace {

constexpr int kResultFile = 3;
constexpr unsigned kMaxSeconds = 600;  // if nobody waits for it any more

void tell(const std::string& text) {
  for (size_t written = 0; written < text.size();) {
    const ssize_t bytes = write(kResultFile, text.data() + written, text.size() - written);
    if (bytes < 0) std::_Exit(5);
    written += static_cast<size_t>(bytes);
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace bertcl::opencl;
  if (argc < 3) {
    std::fputs("bertcl-probe is run by bertcl to try what might crash a driver\n", stderr);
    return 2;
  }
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  alarm(kMaxSeconds);
  // What is stored has been built before: here it must be built.
  setenv("BERTCL_CACHE", "off", 1);
  try {
    const auto context = Context::create(argv[1]);
    if (context->info().name != argv[2]) return 3;
    ProbeOptions options;
    for (int i = 3; i < argc; ++i) options.skipped[argv[i]] = "skipped";
    options.on_begin = [](const std::string& name) { tell("begin " + name + "\n"); };
    tell("found\n" + to_text(run_probes(*context, options)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bertcl-probe: %s\n", error.what());
    return 4;
  }
  std::_Exit(0);  // how a driver ends a process is not asked
}
