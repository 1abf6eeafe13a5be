/* SPDX-License-Identifier: Apache-2.0
 * c_models MODEL_FOLDER DATA_FOLDER SCRATCH_FOLDER: quantization and evaluation in C, with what is
 * wrong, cancelled or asked for by an older header.
 */
#include <bertcl/bertcl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define EXPECT(condition)                                                               \
  do {                                                                                  \
    if (!(condition)) {                                                                 \
      fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, bertcl_last_error()); \
      ++failures;                                                                       \
    }                                                                                   \
  } while (0)

static int contains(const char* text, const char* part) { return text && strstr(text, part); }

typedef struct seen {
  int calls, stop_at; /* 0: never */
  int64_t done, total;
  char what[64];
} seen;

static int see(void* user, const char* what, int64_t done, int64_t total) {
  seen* all = user;
  ++all->calls;
  all->done = done;
  all->total = total;
  snprintf(all->what, sizeof(all->what), "%s", what);
  return all->calls == all->stop_at;
}

static int exists(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file) fclose(file);
  return file != NULL;
}

static char model[4096], calibration[4096], data[4096], texts[4096], int8[4096], vocabulary[4096];

static void quantizes(void) {
  seen progress = {0};
  bertcl_quantize_options options = {.size = sizeof(options),
                                     .smooth = BERTCL_NO,
                                     .gptq = BERTCL_NO,
                                     .samples = 4,
                                     .progress = see,
                                     .user = &progress};
  char* report = NULL;
  progress.stop_at = 2;
  EXPECT(bertcl_quantize(model, int8, calibration, &options, &report) == BERTCL_CANCELLED);
  EXPECT(!report && !exists(int8) && progress.calls == 2);

  memset(&progress, 0, sizeof(progress));
  EXPECT(bertcl_quantize(model, int8, calibration, &options, &report) == BERTCL_OK);
  EXPECT(contains(report, "\"schema\":\"bertcl.quantize/1\""));
  EXPECT(contains(report, "\"samples\":4,"));
  EXPECT(progress.done == 4 && progress.total == 4 && progress.what[0]);
  bertcl_string_free(report);

  const int64_t ids[] = {101, 2040, 102, 101, 2054, 2003, 102}, offsets[] = {0, 3, 7};
  bertcl_sequences samples = {.size = sizeof(samples), .count = 2, .offsets = offsets, .ids = ids};
  const char* exclude[] = {"/m/qa_outputs/*"};
  options.exclude = exclude;
  options.exclude_count = 1;
  EXPECT(bertcl_quantize_sequences(model, int8, &samples, &options, &report) == BERTCL_OK);
  EXPECT(contains(report, "\"samples\":2,") && contains(report, "excluded by '/m/qa_outputs/*'"));
  bertcl_string_free(report);
  EXPECT(bertcl_quantize_sequences(model, int8, &samples, &options, NULL) == BERTCL_OK);

  samples.count = 0;
  EXPECT(bertcl_quantize_sequences(model, int8, &samples, &options, &report) ==
         BERTCL_INVALID_ARGUMENT);
  exclude[0] = NULL;
  EXPECT(bertcl_quantize(model, int8, calibration, &options, &report) == BERTCL_INVALID_ARGUMENT);
  options.exclude_count = 0;
  options.smooth = 3;
  EXPECT(bertcl_quantize(model, int8, calibration, &options, &report) == BERTCL_INVALID_ARGUMENT);
  EXPECT(contains(bertcl_last_error(), "smooth"));
  options.smooth = BERTCL_NO;
  options.samples = -1;
  EXPECT(bertcl_quantize(model, int8, calibration, &options, &report) == BERTCL_INVALID_ARGUMENT);
  options.samples = 1;
  options.preset = "best";
  EXPECT(bertcl_quantize(model, int8, calibration, &options, &report) == BERTCL_INVALID_ARGUMENT);
  EXPECT(contains(bertcl_last_error(), "'best'"));
  options.size = 0;
  EXPECT(bertcl_quantize(model, int8, calibration, &options, &report) == BERTCL_INVALID_ARGUMENT);
  EXPECT(bertcl_quantize(model, int8, NULL, NULL, &report) == BERTCL_INVALID_ARGUMENT);
  EXPECT(bertcl_quantize(model, int8, "/nowhere.json", NULL, &report) == BERTCL_IO);
  EXPECT(contains(bertcl_last_error(), "/nowhere.json"));
}

static void evaluates(bertcl_session* session) {
  seen progress = {0};
  bertcl_evaluate_options options = {
      .size = sizeof(options), .limit = 6, .predictions = 1, .progress = see, .user = &progress};
  char* report = NULL;
  EXPECT(bertcl_evaluate(session, data, &options, &report) == BERTCL_OK);
  EXPECT(contains(report, "\"schema\":\"bertcl.eval/1\""));
  EXPECT(contains(report, "\"total\":6,") && contains(report, "\"exact_match\":"));
  EXPECT(contains(report, "\"predictions\":{\""));
  EXPECT(progress.done == 6 && progress.total == 6);
  bertcl_string_free(report);

  /* An older header, whose struct ends before the progress. */
  options.size = offsetof(bertcl_evaluate_options, predictions);
  progress.calls = 0;
  EXPECT(bertcl_evaluate(session, data, &options, &report) == BERTCL_OK);
  EXPECT(!contains(report, "\"predictions\"") && progress.calls == 0);
  bertcl_string_free(report);
  options.size = sizeof(options);

  progress.stop_at = 1;
  EXPECT(bertcl_evaluate(session, data, &options, &report) == BERTCL_CANCELLED && !report);
  progress.stop_at = 0;

  options.task = "fill-mask"; /* a model with another head */
  EXPECT(bertcl_evaluate(session, texts, &options, &report) == BERTCL_UNSUPPORTED);
  options.task = "translate";
  EXPECT(bertcl_evaluate(session, texts, &options, &report) == BERTCL_INVALID_ARGUMENT);
  EXPECT(contains(bertcl_last_error(), "'translate'"));
  options.task = NULL;
  options.max_length = 600;
  EXPECT(bertcl_evaluate(session, data, &options, &report) == BERTCL_INVALID_ARGUMENT);
  EXPECT(contains(bertcl_last_error(), "600"));
  options.max_length = 0;
  options.n_best = -1;
  EXPECT(bertcl_evaluate(session, data, &options, &report) == BERTCL_INVALID_ARGUMENT);
  options.n_best = 0;
  options.vocabulary = "/nowhere/vocab.txt";
  EXPECT(bertcl_evaluate(session, data, &options, &report) == BERTCL_IO);
  options.vocabulary = vocabulary;
  options.limit = 1;
  EXPECT(bertcl_evaluate(session, data, &options, &report) == BERTCL_OK);
  bertcl_string_free(report);
  options.size = 1;
  EXPECT(bertcl_evaluate(session, data, &options, &report) == BERTCL_INVALID_ARGUMENT);
  EXPECT(bertcl_evaluate(session, "/nowhere.json", NULL, &report) == BERTCL_IO);
  EXPECT(bertcl_evaluate(session, data, NULL, NULL) == BERTCL_INVALID_ARGUMENT);
  EXPECT(bertcl_evaluate(NULL, data, NULL, &report) == BERTCL_INVALID_ARGUMENT);
}

int main(int count, char** arguments) {
  if (count != 4) return 2;
  snprintf(model, sizeof(model), "%s/model.onnx", arguments[1]);
  snprintf(vocabulary, sizeof(vocabulary), "%s/vocab.txt", arguments[1]);
  snprintf(calibration, sizeof(calibration), "%s/calibration.json", arguments[2]);
  snprintf(data, sizeof(data), "%s/sample-v2.0.json", arguments[2]);
  snprintf(int8, sizeof(int8), "%s/c_models-int8.onnx", arguments[3]);
  snprintf(texts, sizeof(texts), "%s/c_models.txt", arguments[3]);
  FILE* file = fopen(texts, "w");
  if (!file) return 2;
  fputs("Oslo is the capital of Norway.\n", file);
  fclose(file);
  remove(int8);

  quantizes();
  bertcl_session* session = NULL;
  EXPECT(bertcl_session_load(model, NULL, &session) == BERTCL_OK);
  if (session) evaluates(session);
  bertcl_session_free(session);
  bertcl_session* quantized = NULL; /* its vocabulary is not beside it */
  bertcl_session_options strict = {.size = sizeof(strict), .require_int8 = 1};
  char* report = NULL;
  EXPECT(bertcl_session_load(int8, &strict, &quantized) == BERTCL_OK);
  EXPECT(bertcl_evaluate(quantized, data, NULL, &report) == BERTCL_IO);
  EXPECT(contains(bertcl_last_error(), "no vocabulary"));
  bertcl_session_free(quantized);
  bertcl_string_free(NULL);
  remove(int8);
  remove(texts);
  printf("c_models: %d failures\n", failures);
  return failures != 0;
}
