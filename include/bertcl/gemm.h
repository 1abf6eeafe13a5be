/* SPDX-License-Identifier: Apache-2.0
 * int8 matrix multiplication on the caller's OpenCL objects, for any OpenCL 1.2 device:
 *
 *   out[M][N] = requantize(activation(a_scale * w_scale[n] * sum + bias[n]))
 *   sum       = sum over k of (a[m][k] - a_zero_point) * (w[k][n] - w_zero_point[n])
 *
 * a is u8 or i8, the weights w are i8 and prepacked once, sums are exact in int32, out is f32, u8,
 * i8 or i32. All matrices are dense and row-major. M may differ from call to call.
 *
 * A context, weights and a GEMM may each be used by several threads at once, with queues of their
 * own, and are freed by one. A GEMM keeps its weights, and weights their context: they may be freed
 * in any order. Statuses, messages and structs that begin with their size: see bertcl.h. More in
 * docs/gemm.md.
 */
#ifndef BERTCL_GEMM_H_
#define BERTCL_GEMM_H_

#ifdef __APPLE__
#include <OpenCL/cl.h>
#else
#include <CL/cl.h>
#endif

#include "bertcl/bertcl.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bertcl_gemm_context bertcl_gemm_context;
typedef struct bertcl_gemm_weights bertcl_gemm_weights;
typedef struct bertcl_gemm bertcl_gemm;

typedef enum bertcl_activation {
  BERTCL_ACTIVATION_NONE = 0,
  BERTCL_ACTIVATION_GELU,      /* x/2 (1 + erf(x / sqrt 2)) */
  BERTCL_ACTIVATION_GELU_TANH, /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
  BERTCL_ACTIVATION_RELU,
  BERTCL_ACTIVATION_TANH
} bertcl_activation;

/* All zeros but `size` are the defaults. */
typedef struct bertcl_gemm_options {
  size_t size;
  const char* disable_kernels; /* variants to leave out, as "dot4,portable"; NULL: none */
} bertcl_gemm_options;

/* For the context and the device of `queue`, which it keeps. The first one on a device runs probes
 * of what it can do. `options` may be NULL. */
BERTCL_API bertcl_status bertcl_gemm_context_create(cl_command_queue queue,
                                                    const bertcl_gemm_options* options,
                                                    bertcl_gemm_context** context);
/* NULL is allowed, here and below. */
BERTCL_API void bertcl_gemm_context_free(bertcl_gemm_context* context);

/* The right operand. A pointer and a count of 0 go together. */
typedef struct bertcl_gemm_weights_desc {
  size_t size;
  int64_t k, n;        /* k at most 65793, or 33025 with zero points: sums fit an int32 */
  const void* data;    /* i8 [K][N] on the host, or NULL */
  cl_mem buffer;       /* or the same in a buffer */
  size_t offset;       /* bytes into buffer, a multiple of the device's sub-buffer alignment */
  int32_t transposed;  /* 1: [N][K] */
  const float* scales; /* NULL: 1 */
  int64_t scale_count; /* 1, or n: one for each column */
  const int32_t* zero_points; /* from -128 to 127; NULL: 0 */
  int64_t zero_point_count;   /* 1, or n */
} bertcl_gemm_weights_desc;

/* Prepacks weights for the fastest variant of the device. What the context's queue was given before
 * is waited for; on return `data` or `buffer` may change or go. */
BERTCL_API bertcl_status bertcl_gemm_weights_create(bertcl_gemm_context* context,
                                                    const bertcl_gemm_weights_desc* desc,
                                                    bertcl_gemm_weights** weights);
/* Bytes of device memory that they take; 0 of NULL. */
BERTCL_API size_t bertcl_gemm_weights_bytes(const bertcl_gemm_weights* weights);
BERTCL_API void bertcl_gemm_weights_free(bertcl_gemm_weights* weights);

/* All of a GEMM but the weights and M. What it points to is copied. */
typedef struct bertcl_gemm_desc {
  size_t size;
  int32_t a_type;          /* BERTCL_U8 or BERTCL_I8 */
  int32_t a_zero_point;    /* within the type of a */
  float a_scale;           /* 0: 1 */
  const float* bias;       /* [n], added after the scales; NULL: none */
  int32_t activation;      /* bertcl_activation */
  int32_t out_type;        /* BERTCL_F32, BERTCL_U8, BERTCL_I8; or BERTCL_I32: the sums alone */
  const float* out_scales; /* of BERTCL_U8 and BERTCL_I8, else NULL */
  int64_t out_scale_count; /* 1, or n */
  const int32_t* out_zero_points; /* NULL: 0 */
  int64_t out_zero_point_count;   /* 1, or n */
} bertcl_gemm_desc;

/* Builds the kernels, which every GEMM of the context with the same options shares. */
BERTCL_API bertcl_status bertcl_gemm_create(bertcl_gemm_weights* weights,
                                            const bertcl_gemm_desc* desc, bertcl_gemm** gemm);
/* What is queued runs to its end. */
BERTCL_API void bertcl_gemm_free(bertcl_gemm* gemm);

/* What one call reads and writes. An offset is in bytes, a multiple of the device's alignment of
 * sub-buffers (CL_DEVICE_MEM_BASE_ADDR_ALIGN / 8). */
typedef struct bertcl_gemm_args {
  size_t size;
  int64_t m; /* 0: nothing but the event */
  cl_mem a;  /* [M][K] */
  size_t a_offset;
  cl_mem out; /* [M][N]; no byte beyond it is written */
  size_t out_offset;
  cl_mem a_scale;      /* f32 [1], an additional scale factor, computed on the device; NULL: 1 */
  cl_mem a_zero_point; /* [1] of the type of a, in place of that of the desc; NULL: that */
  cl_mem row_scales;   /* f32 [M], a further factor for each row; NULL: 1 */
} bertcl_gemm_args;

/* Queues the GEMM and returns. The queue is of the context's cl_context and device, in order or
 * not. `wait_list` is what it waits for; `event`, if not NULL, is set where the call succeeds, and
 * the caller releases it. */
BERTCL_API bertcl_status bertcl_gemm_enqueue(bertcl_gemm* gemm, cl_command_queue queue,
                                             const bertcl_gemm_args* args, cl_uint wait_count,
                                             const cl_event* wait_list, cl_event* event);

typedef struct bertcl_gemm_info {
  size_t size;
  const char* variant;        /* that a call of `m` rows runs: "x86_avx2", "dot4_64x64", ... */
  const char* why_not_faster; /* reasons of the variants above it; "": there are none */
} bertcl_gemm_info;

/* The strings live as long as the GEMM. Set info->size before. */
BERTCL_API bertcl_status bertcl_gemm_get_info(const bertcl_gemm* gemm, int64_t m,
                                              bertcl_gemm_info* info);

#ifdef __cplusplus
}
#endif

#endif
