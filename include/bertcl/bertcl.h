/* SPDX-License-Identifier: Apache-2.0
 * The C interface of bertcl: opaque handles, status codes, no exceptions.
 *
 * Structs that a caller fills begin with their size, `sizeof` by the header that it was compiled
 * with: later versions add members at the end and take what is missing as 0. Every function may be
 * called from any thread; one handle may be used by several threads at once, and is freed by one.
 */
#ifndef BERTCL_BERTCL_H_
#define BERTCL_BERTCL_H_

#include <stddef.h>
#include <stdint.h>

#include "bertcl/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum bertcl_status {
  BERTCL_OK = 0,
  BERTCL_INVALID_ARGUMENT = 1, /* a null pointer, an index outside, a struct of no known size */
  BERTCL_ERROR = 2             /* what bertcl_last_error() says */
} bertcl_status;

/* Element types of ONNX. BERTCL_BOOL is one byte, 0 or 1. */
typedef enum bertcl_type {
  BERTCL_F32 = 0,
  BERTCL_F16,
  BERTCL_BF16,
  BERTCL_F64,
  BERTCL_I8,
  BERTCL_U8,
  BERTCL_I16,
  BERTCL_U16,
  BERTCL_I32,
  BERTCL_U32,
  BERTCL_I64,
  BERTCL_U64,
  BERTCL_BOOL
} bertcl_type;

typedef enum bertcl_precision {
  BERTCL_PRECISION_FP32 = 0,
  BERTCL_PRECISION_FP16,
  BERTCL_PRECISION_BF16
} bertcl_precision;

/* All zeros but `size` are the defaults. */
typedef struct bertcl_session_options {
  size_t size;
  const char* device;      /* part of a name, or "gpu", "cpu"; NULL: first GPU, else CPU */
  int32_t precision;       /* bertcl_precision: of float linears and attention */
  int32_t requests;        /* most runs in flight; 0: 4 */
  int64_t max_memory;      /* bytes of weights and values; 0: what the device has */
  int32_t require_int8;    /* error where a MatMul that the file quantizes runs in float */
  int32_t allow_nonfinite; /* weights may hold NaN and infinity */
} bertcl_session_options;

/* A dense row-major tensor of `rank` extents. Whose memory it is, each function says. */
typedef struct bertcl_tensor {
  size_t size;
  const char* name;
  int32_t type; /* bertcl_type */
  int32_t rank;
  const int64_t* shape; /* of an input or output of a model: -1 where the extent is free */
  const void* data;
  size_t bytes;
} bertcl_tensor;

/* Sequences without padding: sequence i is [offsets[i], offsets[i + 1]) of `ids`. */
typedef struct bertcl_sequences {
  size_t size;
  int64_t count;          /* of sequences */
  const int64_t* offsets; /* count + 1, from 0 */
  const int64_t* ids;
  const int64_t* types; /* segments; NULL: all 0 */
} bertcl_sequences;

typedef struct bertcl_session bertcl_session;
typedef struct bertcl_results bertcl_results;

/* "0.1.0" */
BERTCL_API const char* bertcl_version(void);
/* The message of the last failed call of this thread; "" before. Valid until the next one. */
BERTCL_API const char* bertcl_last_error(void);

/* Reads an ONNX file and compiles it for a device. `options` may be NULL. */
BERTCL_API bertcl_status bertcl_session_load(const char* model,
                                             const bertcl_session_options* options,
                                             bertcl_session** session);
/* NULL is allowed. No run may be under way, and results stay. */
BERTCL_API void bertcl_session_free(bertcl_session* session);

BERTCL_API size_t bertcl_session_input_count(const bertcl_session* session);
BERTCL_API size_t bertcl_session_output_count(const bertcl_session* session);
/* Name, type and shape, which live as long as the session; no data. Set tensor->size before. */
BERTCL_API bertcl_status bertcl_session_input(const bertcl_session* session, size_t index,
                                              bertcl_tensor* tensor);
BERTCL_API bertcl_status bertcl_session_output(const bertcl_session* session, size_t index,
                                               bertcl_tensor* tensor);

/* Runs one batch; the inputs are copied. As Session::run() of session.hpp. */
BERTCL_API bertcl_status bertcl_session_run(bertcl_session* session, const bertcl_tensor* inputs,
                                            size_t count, bertcl_results** results);
/* Outputs [batch, seq, ...] become [tokens, ...] in the order of the sequences. */
BERTCL_API bertcl_status bertcl_session_run_sequences(bertcl_session* session,
                                                      const bertcl_sequences* sequences,
                                                      bertcl_results** results);

/* The outputs of a run, in the order of their names. */
BERTCL_API size_t bertcl_results_count(const bertcl_results* results);
/* All of a tensor; it lives as long as the results. Set tensor->size before. */
BERTCL_API bertcl_status bertcl_results_get(const bertcl_results* results, size_t index,
                                            bertcl_tensor* tensor);
BERTCL_API bertcl_status bertcl_results_find(const bertcl_results* results, const char* name,
                                             bertcl_tensor* tensor);
/* NULL is allowed. */
BERTCL_API void bertcl_results_free(bertcl_results* results);

#ifdef __cplusplus
}
#endif

#endif
