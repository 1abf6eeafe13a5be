// SPDX-License-Identifier: Apache-2.0
// The capabilities of a device, as shown by probe kernels.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace bertcl::opencl {

/// Each flag says that a small kernel was built, run and compared exactly with numbers computed on
/// the host (a driver's extension list only says what is worth trying). Instructions of CPUs are
/// probed only where kernels run inside this process and the CPU and the system have them:
/// elsewhere the instruction would end the process. The probes run in a process of their own,
/// `bertcl-probe` (probe/probe.hpp): a driver that crashes in one of them does not have that
/// capability.
///
/// The environment variable BERTCL_DISABLE hides capabilities by name: "avx512_vnni,avx2,fp16".
struct Capabilities {
  /// Views of one buffer may overlap. Decided by the platform's name: a driver that fails here does
  /// so at some later call.
  bool overlapping_views = false;

  /// Kernels run as threads of this process (PoCL, Intel's runtime): addresses stay valid between
  /// launches.
  bool in_process_cpu = false;

  /// Steps that share a launch (kernels_cl/persistent/persistent.cl): separately compiled and
  /// linked functions, buffers accessed by address, work-groups that wait for each other.
  bool persistent_kernel = false;

  /// The binary of a program with inline assembly can be queried (PoCL 6 crashes).
  bool assembly_binaries = false;

  // Instructions of CPUs that kernels use through builtins or inline assembly.
  bool avx2 = false;         ///< 256-bit integers; pmaddwd
  bool avx512 = false;       ///< 512-bit vectors with F, BW, DQ, VL; pmaddwd on 512 bits
  bool avx512_vnni = false;  ///< vpdpbusd on 512 bits: four u8*s8 products into one s32, exact
  bool avx_vnni = false;     ///< the same on 256 bits of client chips
  bool avx512_bf16 = false;  ///< vdpbf16ps on 512 bits
  bool arm_sdot = false;     ///< sdot of 64-bit Arm: four s8*s8 products into one s32, exact

  // OpenCL extensions.
  bool fp16 = false;             ///< arithmetic in half, not only its storage
  bool fp64 = false;             ///< arithmetic in double
  bool int_dot_product = false;  ///< packed 4x8-bit dot products of cl_khr_integer_dot_product
  bool subgroups = false;        ///< sub-group reduction of cl_khr_subgroups
  bool command_buffer = false;   ///< launches recorded by cl_khr_command_buffer and replayed

  // Instructions of one vendor.
  bool ptx_dp4a = false;        ///< NVIDIA: dp4a by inline PTX
  bool ptx_mma_s8 = false;      ///< NVIDIA: mma.sync.m16n8k32 of s8 by inline PTX
  bool ptx_wgmma_s8 = false;    ///< NVIDIA sm_90: wgmma of s8 and u8 by s8, as PTX for sm_90a
  bool ptx_cp_async = false;    ///< NVIDIA: cp.async of 16 bytes by inline PTX
  bool intel_dpas_8 = false;    ///< Intel: DPAS of s8 by sub-groups of 8
  bool intel_dpas_16 = false;   ///< Intel: DPAS of s8 by sub-groups of 16
  bool amd_mfma_k16 = false;    ///< AMD gfx908, gfx90a: MFMA of s8, 16 x 16 x 16
  bool amd_mfma_k32 = false;    ///< AMD gfx940 and later: MFMA of s8, 16 x 16 x 32
  bool amd_wmma = false;        ///< AMD gfx11: WMMA of s8, 16 x 16 x 16
  bool amd_wmma_gfx12 = false;  ///< AMD gfx12: the same, in another layout
  bool matrix_f16 = false;      ///< the matrix unit above multiplies halves, too
  bool amd_sdot4 = false;       ///< AMD: __builtin_amdgcn_sdot4
  bool amd_sudot4 = false;      ///< AMD from gfx11 on: __builtin_amdgcn_sudot4
  bool arm_dot_acc = false;     ///< Arm: arm_dot_acc of cl_arm_integer_dot_product_accumulate_int8

  /// Why a capability is absent, by its name: "not listed by the driver", "disabled by
  /// BERTCL_DISABLE".
  std::map<std::string, std::string> notes;

  /// False if a probe failed for a transient reason (out of memory, device busy): the result is
  /// not cached.
  bool is_cacheable = true;

  /// (name, present) of every flag above, in this order.
  std::vector<std::pair<std::string, bool>> list() const;
};

/// The name of a flag, as in list().
const char* capability_name(bool Capabilities::*flag);

/// A back end of kernels_cl/units/dot4.clh for four-byte dot products.
struct Dot4 {
  int code;  ///< for -DDOT4
  const char* name;
};

/// The first that the probes have shown to be exact: PTX, Khronos, AMD, Arm; else the emulation.
Dot4 dot4_of(const Capabilities& capabilities);

/// A unit of kernels_cl/units/matrix.clh: an instruction that multiplies matrices of s8.
struct MatrixUnit {
  int code;   ///< for -DMATRIX_UNIT
  int lanes;  ///< of its sub-groups
  int m, n;   ///< of its tile
  bool Capabilities::*flag;
};

/// The matrix unit that the probes have found; null if none.
const MatrixUnit* matrix_unit_of(const Capabilities& capabilities);

/// Every unit, in order of preference.
std::span<const MatrixUnit> matrix_units();

/// One line for each flag: name, 0 or 1, note.
std::string to_text(const Capabilities& capabilities);
std::optional<Capabilities> from_text(const std::string& text);

/// Clears the flags named in the comma-separated list (BERTCL_DISABLE), with a note. Throws Error
/// with the known names for an unknown one.
void disable(Capabilities& capabilities, const std::string& names);

/// Throws Error with the known names if BERTCL_DISABLE names an unknown capability.
void check_disabled_capabilities();

}  // namespace bertcl::opencl
