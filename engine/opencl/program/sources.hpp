// SPDX-License-Identifier: Apache-2.0
// The kernel sources: embedded in the program, or read from a folder during development.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bertcl::opencl {

/// What the host must know of a program's text.
struct SourceTraits {
  bool has_assembly = false;  ///< inline, of which PoCL may not make binaries
  bool has_barriers = false;
  bool has_sm_90a = false;  ///< comments with instructions of sm_90a (ptx.hpp)

  auto operator<=>(const SourceTraits&) const = default;
};

/// One file of kernels_cl/, by its path there: "gemm/gemm_s8_ref.cl".
struct SourceFile {
  std::string_view name;
  std::string_view text;
  SourceTraits traits;  ///< of this text, without what it includes
};

/// A program's text as it is compiled.
struct FinalSource {
  std::string text;
  SourceTraits traits;

  auto operator<=>(const FinalSource&) const = default;
};

/// All .cl and .clh files that were embedded when the program was built (cmake/EmbedKernels.cmake).
std::span<const SourceFile> embedded_sources();

/// A kernel that the persistent kernel can run: its file says MERGEABLE(kernel, ..) or
/// ALWAYS_MERGED(kernel, ..) (kernels_cl/persistent/place.clh).
struct MergeableKernel {
  std::string_view program, kernel;
  bool always = false;  ///< ALWAYS_MERGED: it is in every persistent kernel
};

/// Those of the embedded files.
std::span<const MergeableKernel> mergeable_kernels();

/// Names of the programs: stems of all .cl files, sorted.
std::vector<std::string> program_names();

/// The final source of the program `stem`: the text of `stem`.cl with each `#include "lib/x.clh"`
/// replaced by the text of that file, once per program. `#line` directives keep the build log true.
/// The environment variable BERTCL_KERNELS names a folder to read files from instead of the
/// embedded ones. Throws Error if a file is missing.
FinalSource final_source(std::string_view stem);

/// Throws Error where BERTCL_KERNELS names anything but a folder.
void check_kernel_folder();

}  // namespace bertcl::opencl
