// SPDX-License-Identifier: Apache-2.0
// The kernel sources: embedded in the program, or read from a folder during development.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bertcl::opencl {

/// One file of kernels_cl/, by its path there: "gemm/gemm_s8_ref.cl".
struct SourceFile {
  std::string_view name;
  std::string_view text;
};

/// All .cl and .clh files that were embedded when the program was built (cmake/EmbedKernels.cmake).
std::span<const SourceFile> embedded_sources();

/// Names of the programs: stems of all .cl files, sorted.
std::vector<std::string> program_names();

/// The final source of the program `stem`: the text of `stem`.cl with each `#include "lib/x.clh"`
/// replaced by the text of that file, once per program. `#line` directives keep the build log true.
/// The environment variable BERTCL_KERNELS names a folder to read files from instead of the
/// embedded ones. Throws Error if a file is missing.
std::string final_source(std::string_view stem);

/// Throws Error where BERTCL_KERNELS names anything but a folder.
void check_kernel_folder();

}  // namespace bertcl::opencl
