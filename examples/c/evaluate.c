/* SPDX-License-Identifier: Apache-2.0
 * evaluate MODEL DATA OUTPUT: quantizes a question-answering model on the questions of a SQuAD
 * file, and prints the scores of both models as JSON. The vocabulary lies beside MODEL.
 */
#include <bertcl/bertcl.h>
#include <stdio.h>
#include <string.h>

static int fail(void) {
  fprintf(stderr, "%s\n", bertcl_last_error());
  return 1;
}

/* 0 goes on, anything else would cancel. */
static int show(void* user, const char* what, int64_t done, int64_t total) {
  (void)user;
  fprintf(stderr, "\r%s %lld/%lld ", what, (long long)done, (long long)total);
  return 0;
}

static int score(const char* model, const char* data, const char* vocabulary) {
  const bertcl_evaluate_options options = {
      .size = sizeof(options), .vocabulary = vocabulary, .progress = show};
  bertcl_session* session = NULL;
  char* report = NULL;
  int status = 0;
  if (bertcl_session_load(model, NULL, &session) != BERTCL_OK ||
      bertcl_evaluate(session, data, &options, &report) != BERTCL_OK)
    status = fail();
  else
    printf("%s\n", report);
  bertcl_string_free(report);
  bertcl_session_free(session);
  return status;
}

int main(int count, char** arguments) {
  if (count != 4) {
    fprintf(stderr, "usage: evaluate MODEL DATA OUTPUT\n");
    return 2;
  }
  const char *model = arguments[1], *data = arguments[2], *output = arguments[3];
  char vocabulary[4096];
  const char* slash = strrchr(model, '/');
  snprintf(vocabulary, sizeof(vocabulary), "%.*svocab.txt", slash ? (int)(slash + 1 - model) : 0,
           model);
  const bertcl_quantize_options options = {.size = sizeof(options), .progress = show};
  if (bertcl_quantize(model, output, data, &options, NULL) != BERTCL_OK) return fail();
  return score(model, data, vocabulary) | score(output, data, vocabulary);
}
