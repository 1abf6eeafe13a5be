/* SPDX-License-Identifier: Apache-2.0
 * gemm: multiplies u8 by prepacked i8 weights on the first OpenCL device, adds a bias, applies ReLU
 * and quantizes to u8; then checks each number against plain loops.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <bertcl/gemm.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { M = 33, N = 100, K = 70, A_ZERO = 128, OUT_ZERO = 3 };
static const float kScale = 1.0f / 1024, kOutScale = 0.25f; /* powers of two: exact */

static uint8_t a[M * K], out[M * N];
static int8_t w[K * N];
static float bias[N];

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, bertcl_last_error());
  return 1;
}

static uint8_t expected(int m, int n) {
  int32_t sum = 0;
  for (int k = 0; k < K; ++k) sum += (a[m * K + k] - A_ZERO) * w[k * N + n];
  float y = (float)sum * kScale + bias[n];
  y = y > 0 ? y / kOutScale : 0;
  int32_t rounded = (int32_t)y; /* half to even, as the kernels */
  const float rest = y - (float)rounded;
  if (rest > 0.5f || (rest == 0.5f && rounded % 2)) ++rounded;
  rounded += OUT_ZERO;
  return rounded > 255 ? 255 : (uint8_t)rounded;
}

/* 0 where all of it is right. */
static int multiply(bertcl_gemm* gemm, cl_context context, cl_command_queue queue) {
  cl_event done = NULL;
  cl_mem a_buffer =
      clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof(a), a, NULL);
  cl_mem out_buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(out), NULL, NULL);
  const bertcl_gemm_args args = {.size = sizeof(args), .m = M, .a = a_buffer, .out = out_buffer};
  bertcl_gemm_info info = {.size = sizeof(info)};
  int wrong = 0;
  if (bertcl_gemm_enqueue(gemm, queue, &args, 0, NULL, &done) != BERTCL_OK ||
      bertcl_gemm_get_info(gemm, M, &info) != BERTCL_OK) {
    wrong = fail("gemm");
  } else {
    clEnqueueReadBuffer(queue, out_buffer, CL_TRUE, 0, sizeof(out), out, 1, &done, NULL);
    clReleaseEvent(done);
    for (int i = 0; i < M * N; ++i) wrong += out[i] != expected(i / N, i % N);
    printf("%d x %d x %d by %s: %d of %d wrong\n", M, N, K, info.variant, wrong, M * N);
  }
  clReleaseMemObject(a_buffer);
  clReleaseMemObject(out_buffer);
  return wrong;
}

int main(void) {
  for (int i = 0; i < M * K; ++i) a[i] = (uint8_t)(i * 37);
  for (int i = 0; i < K * N; ++i) w[i] = (int8_t)(i * 11 % 255 - 127);
  for (int n = 0; n < N; ++n) bias[n] = (float)n / 8;

  cl_platform_id platform;
  cl_device_id device;
  if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
      clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) {
    fprintf(stderr, "no OpenCL device\n");
    return 1;
  }
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);

  bertcl_gemm_context* gemms = NULL;
  bertcl_gemm_weights* weights = NULL;
  bertcl_gemm* gemm = NULL;
  const int32_t out_zero = OUT_ZERO;
  const bertcl_gemm_weights_desc weights_desc = {
      .size = sizeof(weights_desc), .k = K, .n = N, .data = w, .scales = &kScale, .scale_count = 1};
  const bertcl_gemm_desc desc = {.size = sizeof(desc),
                                 .a_type = BERTCL_U8,
                                 .a_zero_point = A_ZERO,
                                 .bias = bias,
                                 .activation = BERTCL_ACTIVATION_RELU,
                                 .out_type = BERTCL_U8,
                                 .out_scales = &kOutScale,
                                 .out_scale_count = 1,
                                 .out_zero_points = &out_zero,
                                 .out_zero_point_count = 1};
  int status = 1;
  if (bertcl_gemm_context_create(queue, NULL, &gemms) != BERTCL_OK)
    fail("context");
  else if (bertcl_gemm_weights_create(gemms, &weights_desc, &weights) != BERTCL_OK)
    fail("weights");
  else if (bertcl_gemm_create(weights, &desc, &gemm) != BERTCL_OK)
    fail("gemm");
  else
    status = multiply(gemm, context, queue) != 0;
  bertcl_gemm_free(gemm);
  bertcl_gemm_weights_free(weights);
  bertcl_gemm_context_free(gemms);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return status;
}
