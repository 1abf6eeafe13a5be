// SPDX-License-Identifier: Apache-2.0
// What programs are built from, and the error of a build that the driver refuses.
#pragma once
#include <map>
#include <string>

#include "bertcl/error.hpp"

namespace bertcl::opencl {

/// A program that the driver does not build, because of what it is: an error in it, or more
/// registers or local memory than there are. With ErrorCode::out_of_memory (CL_OUT_OF_RESOURCES)
/// other work may hold what is missing; the program is at fault if it is refused after
/// Queue::finish(), too.
class ProgramBuildError : public Error {
 public:
  using Error::Error;
};

/// -D options of a program. Sorted by name, so that the same values always give the same options.
using Defines = std::map<std::string, int>;

/// One of the programs that another one is linked from.
struct LinkedPart {
  std::string program;
  Defines defines;
  std::string more_options;  // " -DNAME=TEXT"
};

}  // namespace bertcl::opencl
