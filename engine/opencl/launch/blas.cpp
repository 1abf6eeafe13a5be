// SPDX-License-Identifier: Apache-2.0
// Calls of CLBlast: bounds, parameters for CPU devices, errors and profile.
#include "opencl/launch/blas.hpp"

#include <fmt/format.h>

// After the target version of cl.hpp is set.
#include "opencl/base/cl.hpp"
// clang-format off
#include <clblast.h>
#include <clblast_half.h>
// clang-format on

#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

#include "bertcl/error.hpp"
#include "opencl/base/status.hpp"
#include "opencl/context.hpp"
#include "opencl/device/capabilities.hpp"
#include "support/for_each.hpp"

namespace bertcl::opencl {
namespace {

// One call at a time: the object cache of CLBlast before 1.6.1 is not safe with threads.
std::mutex blas_mutex;

std::string blas_status_name(clblast::StatusCode status) {
  switch (status) {
#define BERTCL_STATUS(name)       \
  case clblast::StatusCode::name: \
    return #name;
    BERTCL_FOR_EACH(BERTCL_STATUS, kNotImplemented, kInvalidMatrixA, kInvalidMatrixB,
                    kInvalidMatrixC, kInvalidDimension, kInvalidLeadDimA, kInvalidLeadDimB,
                    kInvalidLeadDimC, kInsufficientMemoryA, kInsufficientMemoryB,
                    kInsufficientMemoryC, kInsufficientMemoryTemp, kInvalidBatchCount,
                    kInvalidOverrideKernel, kMissingOverrideParameter, kInvalidLocalMemUsage,
                    kNoHalfPrecision, kDatabaseError, kUnknownError, kUnexpectedError)
#undef BERTCL_STATUS
    default:  // the other codes are those of CL
      return status_name(static_cast<int>(status));
  }
}

void check_blas(clblast::StatusCode status, const std::string& what) {
  if (status == clblast::StatusCode::kSuccess) return;
  throw Error(fmt::format("{}: CLBlast status {} ({})", what, blas_status_name(status),
                          static_cast<int>(status)),
              ErrorCode::device);
}

// Once for each device: parameters for CPUs, where a work-item is a loop iteration and local memory
// is plain memory. 64x64 tiles of 8-wide vectors, no local memory, and the tiled kernel for every
// size. A work-item makes 8x8 results in 8 registers of AVX2, or 16x16 in the 32 registers that
// AVX-512 has. 128x768x768 on two cores of an AMD EPYC with AVX-512, PoCL 3.1, CLBlast 1.5.3,
// 2026-11-21: defaults 7-16 GFLOP/s, 8x8 97-103, 16x16 145-151, 16-wide vectors 39-42.
void tune_for_cpu(Context& context) {
  static std::set<cl_device_id> tuned;
  if (!context.info().is_cpu() || tuned.contains(context.native_device())) return;
  const auto set = [&](const char* kernel, const std::unordered_map<std::string, size_t>& values) {
    check_blas(clblast::OverrideParameters(context.native_device(), kernel,
                                           clblast::Precision::kSingle, values),
               fmt::format("parameters of CLBlast's {}", kernel));
  };
  // Work-items along each side of a tile.
  const size_t items = context.capabilities().avx512 ? 4 : 8;
  set("Xgemm", {{"GEMMK", 0},
                {"KREG", 1},
                {"KWG", 32},
                {"KWI", 2},
                {"SA", 0},
                {"SB", 0},
                {"MWG", 64},
                {"MDIMA", items},
                {"MDIMC", items},
                {"STRM", 0},
                {"VWM", 8},
                {"NWG", 64},
                {"NDIMB", items},
                {"NDIMC", items},
                {"STRN", 0},
                {"VWN", 8}});
  set("GemmRoutine", {{"XGEMM_MIN_INDIRECT_SIZE", 1}});
  tuned.insert(context.native_device());
}

template <typename T>
void gemm(Context& context, const Gemm& g, const Buffer& a, const Buffer& b, Buffer& c, T one,
          T beta, std::string_view label) {
  if (g.m == 0 || g.n == 0 || g.batch == 0) return;
  const auto where = [&] {
    return fmt::format("{}: GEMM of {}x{}x{} (m, n, k), batch {}", label, g.m, g.n, g.k, g.batch);
  };
  const auto fits = [&](const char* matrix, const Buffer& buffer, size_t size, size_t stride) {
    const size_t bytes = size == 0 ? 0 : ((g.batch - 1) * stride + size) * sizeof(T);
    if (bytes > buffer.size())
      throw Error(fmt::format("{}: {} needs {} bytes, but its buffer has {}", where(), matrix,
                              bytes, buffer.size()));
  };
  fits("A", a, g.m * g.k, g.a_stride);
  fits("B", b, g.k * g.n, g.b_stride);
  fits("C", c, g.m * g.n, g.c_stride);

  const auto no = clblast::Transpose::kNo;
  const auto layout = clblast::Layout::kRowMajor;
  Queue& queue = context.queue();
  context.capabilities();  // for tune_for_cpu(): probes queue work of their own
  const auto held = queue.lock();
  cl_command_queue native_queue = queue.native();

  std::lock_guard lock(blas_mutex);
  tune_for_cpu(context);
  const EventHandle before = queue.profiling() ? queue.mark() : nullptr;
  cl_event event = nullptr;
  cl_event* wanted_event = queue.profiling() ? &event : nullptr;
  clblast::StatusCode status;
  if (g.batch == 1) {
    // CLBlast would allocate and free its copies of padded and transposed matrices at each call.
    size_t scratch_bytes = 0;
    check_blas(clblast::GemmTempBufferSize<T>(layout, no, no, g.m, g.n, g.k, 0, g.k, 0, g.n, 0, g.n,
                                              &native_queue, scratch_bytes),
               where());
    cl_mem scratch = scratch_bytes ? context.scratch(scratch_bytes) : nullptr;
    status = clblast::Gemm<T>(layout, no, no, g.m, g.n, g.k, one, a.native(), 0, g.k, b.native(), 0,
                              g.n, beta, c.native(), 0, g.n, &native_queue, wanted_event, scratch);
  } else {
    status = clblast::GemmStridedBatched<T>(
        layout, no, no, g.m, g.n, g.k, one, a.native(), 0, g.k, g.a_stride, b.native(), 0, g.n,
        g.b_stride, beta, c.native(), 0, g.n, g.c_stride, g.batch, &native_queue, wanted_event);
  }
  check_blas(status, where());
  if (event) queue.add_event(adopt(event), label, "CLBlast", before);
}

}  // namespace

void gemm_f32(Context& context, const Gemm& g, const Buffer& a, const Buffer& b, Buffer& c,
              std::string_view label) {
  gemm<float>(context, g, a, b, c, 1.0f, g.beta, label);
}

void gemm_f16(Context& context, const Gemm& g, const Buffer& a, const Buffer& b, Buffer& c,
              std::string_view label) {
  if (!context.capabilities().fp16)
    throw Error(fmt::format("{}: device '{}' does not support fp16 arithmetic ({}); use fp32",
                            label, context.info().name, context.capabilities().notes.at("fp16")));
  gemm<half>(context, g, a, b, c, FloatToHalf(1.0f), FloatToHalf(g.beta), label);
}

}  // namespace bertcl::opencl
