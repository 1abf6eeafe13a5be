/* SPDX-License-Identifier: Apache-2.0
 * The C interface of bertcl: opaque handles, status codes, no exceptions.
 *
 * Structs that a caller fills begin with their size, `sizeof` by the header that it was compiled
 * with: later versions add members at the end and take what is missing as 0; earlier ones refuse a
 * struct where what they lack is not 0. Every function may be called from any thread; one handle
 * may be used by several threads at once, and is freed by one.
 */
#ifndef BERTCL_BERTCL_H_
#define BERTCL_BERTCL_H_

#include <stddef.h>
#include <stdint.h>

#include "bertcl/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a caller can do about a failure, as ErrorCode of error.hpp; bertcl_last_error() says more.
 */
typedef enum bertcl_status {
  BERTCL_OK = 0,
  BERTCL_INVALID_ARGUMENT, /* a null pointer, a struct of no known size; names, shapes, values */
  BERTCL_INVALID_FILE,     /* a model, vocabulary or data set is damaged or of another kind */
  BERTCL_UNSUPPORTED,      /* the model asks for something that bertcl does not have */
  BERTCL_DEVICE,           /* there is no such device, or its driver failed */
  BERTCL_OUT_OF_MEMORY,    /* of device, host or max_memory */
  BERTCL_IO,               /* a file cannot be read or written */
  BERTCL_BUSY,             /* all requests of a session are in flight */
  BERTCL_CANCELLED,        /* a callback asked for it */
  BERTCL_INTERNAL          /* a bug of bertcl */
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

/* As Task of session.hpp. */
typedef enum bertcl_task {
  BERTCL_TASK_UNKNOWN = 0,
  BERTCL_TASK_QUESTION_ANSWERING,
  BERTCL_TASK_TEXT_CLASSIFICATION,
  BERTCL_TASK_TOKEN_CLASSIFICATION,
  BERTCL_TASK_FILL_MASK,
  BERTCL_TASK_FEATURE_EXTRACTION
} bertcl_task;

/* The largest `requests` of a session. */
#define BERTCL_MAX_REQUESTS 1024

/* All zeros but `size` are the defaults; negative numbers are errors. */
typedef struct bertcl_session_options {
  size_t size;
  const char* device;      /* part of a name, or "gpu", "cpu"; NULL: first GPU, else CPU */
  int32_t precision;       /* bertcl_precision: of float linears and attention */
  int32_t requests;        /* runs in flight, at most BERTCL_MAX_REQUESTS; 0: 4 */
  int64_t max_memory;      /* bytes of weights and values; 0: what the device has */
  int32_t require_int8;    /* error where a MatMul that the file quantizes runs in float */
  int32_t allow_nonfinite; /* weights may hold NaN and infinity */
  /* "mean", "max", "cls", "last", or "" of a model that pools itself: one output
   * "sentence_embedding" [batch, dimensions] in place of the model's; NULL: none, an error
   * with `normalize` or `dimensions`. Dense modules of sentence-transformers are not read */
  const char* pooling;
  int32_t normalize;  /* its vectors to L2 norm 1 */
  int64_t dimensions; /* number of leading dimensions to keep; 0: all */
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
  const int64_t* token_type_ids; /* NULL: all 0 */
} bertcl_sequences;

/* Which outputs a run gives; NULL in place of it: all. */
typedef struct bertcl_run_options {
  size_t size;
  const char* const* outputs; /* names */
  size_t output_count;        /* 0: all */
} bertcl_run_options;

/* As ModelInfo of session.hpp; 0 where nothing is known. */
typedef struct bertcl_model_info {
  size_t size;
  int32_t task;      /* bertcl_task */
  int32_t precision; /* bertcl_precision */
  int32_t int8;
  int32_t takes_packed;
  int64_t max_length, vocab_size, heads;
  int64_t weight_bytes;
  const char* device; /* lives as long as the session */
} bertcl_model_info;

/* Called with what is under way and how much of it is done, of `total`, by the thread that made the
 * call. Any other result than 0 ends the call with BERTCL_CANCELLED. */
typedef int (*bertcl_progress)(void* user, const char* what, int64_t done, int64_t total);

/* A setting that defaults to the preset's value. */
typedef enum bertcl_choice { BERTCL_BY_PRESET = 0, BERTCL_YES = 1, BERTCL_NO = 2 } bertcl_choice;

/* As QuantizeOptions of quantize.hpp. All zeros but `size` are the defaults. */
typedef struct bertcl_quantize_options {
  size_t size;
  const char* preset;         /* NULL: "default" */
  const char* method;         /* of calibration: "minmax", ...; NULL: as the preset */
  int32_t smooth;             /* bertcl_choice, as the next two */
  int32_t gptq;               /* round weights by GPTQ */
  int32_t bias_correction;    /* take the mean error out of biases */
  const char* const* exclude; /* nodes that stay float; * and ? as in file names */
  size_t exclude_count;
  const char* device; /* as of bertcl_session_options */
  /* Of bertcl_quantize() alone: */
  const char* vocabulary; /* a file; NULL: the one beside the model */
  int64_t samples;        /* questions to calibrate on; 0: 128 */
  int32_t max_length;     /* tokens of a sample at most; 0: 384 */
  /* Of both: */
  bertcl_progress progress;
  void* user; /* its first argument */
} bertcl_quantize_options;

/* As SquadOptions and TaskOptions of evaluate.hpp. All zeros but `size` are the defaults. */
typedef struct bertcl_evaluate_options {
  size_t size;
  const char* task; /* "classify", "tag", "fill-mask", "similarity", "retrieval", "reranking"; NULL:
                       "question-answering" */
  const char* vocabulary;    /* a file; NULL: the one beside the session's file */
  const char* const* labels; /* of the classes; none: as the files of the model say */
  size_t label_count;
  int64_t limit;           /* only the first items; 0: all */
  int32_t max_length;      /* tokens of a sequence; 0: 384 of questions, else the model's limit */
  int32_t batch_tokens;    /* of a batch at most; 0: 4096, for "fill-mask" 1024 */
  int32_t allow_nonfinite; /* NaN and infinite outputs, else an error */
  int32_t windows;         /* "classify": read long texts in full */
  /* Of questions: */
  int32_t doc_stride;        /* tokens from window to window; 0: 128 */
  int32_t max_query_length;  /* tokens; 0: 64 */
  int32_t max_answer_length; /* tokens; 0: 30 */
  int32_t n_best;            /* start and end positions of a window; 0: 20 */
  double null_threshold;     /* v2.0: no answer where the null odds are above it */
  /* Of all: */
  int32_t predictions; /* the report has "predictions", too: an answer by each id */
  bertcl_progress progress;
  void* user; /* its first argument */
} bertcl_evaluate_options;

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
/* The same for the content of a file, which is copied. */
BERTCL_API bertcl_status bertcl_session_load_bytes(const void* bytes, size_t size,
                                                   const bertcl_session_options* options,
                                                   bertcl_session** session);
/* NULL is allowed. No run may be in flight; results stay valid. */
BERTCL_API void bertcl_session_free(bertcl_session* session);

BERTCL_API size_t bertcl_session_input_count(const bertcl_session* session);
BERTCL_API size_t bertcl_session_output_count(const bertcl_session* session);
/* Name, type and shape, which live as long as the session; no data. Set tensor->size before. */
BERTCL_API bertcl_status bertcl_session_input(const bertcl_session* session, size_t index,
                                              bertcl_tensor* tensor);
BERTCL_API bertcl_status bertcl_session_output(const bertcl_session* session, size_t index,
                                               bertcl_tensor* tensor);

/* Set info->size before. */
BERTCL_API bertcl_status bertcl_session_info(const bertcl_session* session,
                                             bertcl_model_info* info);
/* Device memory that a run of `batch` sequences of `length` tokens needs, the weights aside. */
BERTCL_API bertcl_status bertcl_session_run_memory(const bertcl_session* session, int64_t batch,
                                                   int64_t length, int64_t* bytes);

/* Runs one batch; the inputs are copied. As Session::run() of session.hpp. */
BERTCL_API bertcl_status bertcl_session_run(bertcl_session* session, const bertcl_tensor* inputs,
                                            size_t count, const bertcl_run_options* options,
                                            bertcl_results** results);
/* Outputs [batch, seq, ...] become [tokens, ...] in the order of the sequences; other axes of
   tokens are as long as the longest. */
BERTCL_API bertcl_status bertcl_session_run_sequences(bertcl_session* session,
                                                      const bertcl_sequences* sequences,
                                                      const bertcl_run_options* options,
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

/* Calibrates the float model in the file `model` on the questions of a SQuAD file, and writes the
 * int8 model `output`, as quantize() of quantize.hpp; nothing is left of it on failure, and an
 * `output` that exists is replaced. `options` may be NULL, and so may `report`, which becomes JSON
 * as `bertcl quantize --json` writes it; bertcl_string_free() frees it. */
BERTCL_API bertcl_status bertcl_quantize(const char* model, const char* output, const char* data,
                                         const bertcl_quantize_options* options, char** report);
/* The same on samples of any texts, as token ids. */
BERTCL_API bertcl_status bertcl_quantize_sequences(const char* model, const char* output,
                                                   const bertcl_sequences* samples,
                                                   const bertcl_quantize_options* options,
                                                   char** report);
/* Scores a model on the data file of a task. `options` may be NULL. `report` becomes JSON as
 * `bertcl eval --json` writes it; bertcl_string_free() frees it. */
BERTCL_API bertcl_status bertcl_evaluate(const bertcl_session* session, const char* data,
                                         const bertcl_evaluate_options* options, char** report);
/* NULL is allowed. */
BERTCL_API void bertcl_string_free(char* string);

#ifdef __cplusplus
}
#endif

#endif
