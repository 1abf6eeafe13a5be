/* SPDX-License-Identifier: Apache-2.0
 * run_ids MODEL ID...: runs one sequence of token ids and prints the outputs.
 */
#include <bertcl/bertcl.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(void) {
  fprintf(stderr, "%s\n", bertcl_last_error());
  return 1;
}

static int print(const bertcl_results* results) {
  for (size_t i = 0; i < bertcl_results_count(results); ++i) {
    bertcl_tensor output = {.size = sizeof(output)};
    if (bertcl_results_get(results, i, &output) != BERTCL_OK) return fail();
    printf("%s", output.name);
    for (int32_t axis = 0; axis < output.rank; ++axis)
      printf(" %lld", (long long)output.shape[axis]);
    printf(":");
    if (output.type == BERTCL_F32)
      for (size_t k = 0; k < output.bytes / sizeof(float) && k < 8; ++k)
        printf(" %.3f", ((const float*)output.data)[k]);
    printf("\n");
  }
  return 0;
}

int main(int count, char** arguments) {
  if (count < 3) {
    fprintf(stderr, "usage: run_ids MODEL ID...\n");
    return 2;
  }
  const int64_t tokens = count - 2, offsets[] = {0, tokens};
  int64_t* ids = malloc((size_t)tokens * sizeof(*ids));
  if (!ids) return 1;
  for (int64_t i = 0; i < tokens; ++i) {
    char* end = NULL;
    ids[i] = strtoll(arguments[2 + i], &end, 10);
    if (end == arguments[2 + i] || *end != '\0') {
      fprintf(stderr, "run_ids: %s is not a token id\n", arguments[2 + i]);
      free(ids);
      return 2;
    }
  }

  bertcl_session* session = NULL;
  bertcl_results* results = NULL;
  const bertcl_sequences sequences = {
      .size = sizeof(sequences), .count = 1, .offsets = offsets, .ids = ids};
  int status = 0;
  if (bertcl_session_load(arguments[1], NULL, &session) != BERTCL_OK ||
      bertcl_session_run_sequences(session, &sequences, NULL, &results) != BERTCL_OK)
    status = fail();
  else
    status = print(results);
  bertcl_results_free(results);
  bertcl_session_free(session);
  free(ids);
  return status;
}
