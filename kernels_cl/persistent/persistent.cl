// SPDX-License-Identifier: Apache-2.0
// Steps of a plan in one launch, for CPUs: between two launches threads sleep and are woken, which
// takes longer than a small-M step.
//
//   steps   | step 0: 24 items | step 1: 12 | step 2: 24 items | ...
//   next                                              ^ the first item that nobody has taken
//   done                                  ^ that many are done: step 2 may begin when all before
//                                         it are
//
// Each work-group takes the next items of a step, fewer and fewer of them, as soon as all steps
// before it are done. A group that waits has taken nothing, and so none waits for a group that has
// not begun: the kernel ends on a device that runs its groups one after the other, too. A group
// that sees no progress for long exits: it may be occupying a core that the others need.
//
//   steps   ulong[][STEP_WORDS]: number of the kernel, first item, grid (3), then its arguments as
//           place.clh reads them. Items of a launch are counted through all of its steps.
//   state   int[3][LINE_INTS]: next, done, groups that have left; zeros before and after a launch
//   arena   memory of what the steps read and write: they find it by address, and the driver keeps
//           it for them
//   first, count   steps of this launch
//   STEPS   one STEP(number,function) for each kernel, of programs that this one is linked with
//
// Grid: as many work-items as cores should help, work-group (1,1,1).
#include "persistent/place.clh"

#ifndef STEPS
#define STEPS  // none: for a check of this file alone
#endif
#ifndef PAUSES
#define PAUSES 50000  // while nothing is done, before a group leaves: some milliseconds on x86
#endif
#ifndef SHARES
// A group takes what is left of a step, divided by SHARES times the number of groups.
#define SHARES 1
#endif
#ifndef LEAST
#define LEAST 32  // but no less than all of it, divided by LEAST times that number
#endif
#define STEP_WORDS 48  // these and the bytes of state as in opencl/launch/persistent_kernel.hpp
#define HEADER_WORDS 5
#define LINE_INTS 16  // of a cache line

// Builtins: PoCL 6 makes no binary of a program with assembly (programs.cpp looks for it in the
// text).
#if __has_builtin(__builtin_ia32_pause)
#define PAUSE() __builtin_ia32_pause()
#elif __has_builtin(__builtin_arm_yield)
#define PAUSE() __builtin_arm_yield()
#elif defined(X86) && X86
// Said by the host: Intel's runtime knows neither __x86_64__ nor the builtin.
#define PAUSE() __asm volatile("pause")
#else
#define PAUSE()
#endif

#if __has_builtin(__atomic_thread_fence) && !defined(__NVPTX__)  // whose LLVM has no fence
// PoCL's mem_fence is empty: enough for the order of memory of x86, not for that of ARM.
#define FENCE() __atomic_thread_fence(__ATOMIC_ACQ_REL)
#else
#define FENCE() mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif

#define STEP(number, function) void function(__global const ulong*, int3, int3);
STEPS
#undef STEP

// The place goes in registers: a load of it from memory would wait for all stores of the item
// before.
static void run_item(int kernel_number, __global const ulong* argument, int3 id, int3 size) {
  switch (kernel_number) {
#define STEP(number, function)    \
  case number:                    \
    function(argument, id, size); \
    break;
    STEPS
#undef STEP
  default:
    break;
  }
}

static int items_of(__global const ulong* step) { return step[2] * step[3] * step[4]; }

// Items of a step in the order of a launch: the first axis is the inner one.
static void run_items(__global const ulong* step, int first, int count) {
  const int3 size = (int3)(step[2], step[3], step[4]);
  for (int i = first; i < first + count; i++) {
    const int row = i / size.x;
    run_item(step[0], step + HEADER_WORDS, (int3)(i % size.x, row % size.y, row / size.y), size);
  }
}

ONE_ITEM __kernel void persistent(__global const ulong* steps, __global int* state,
                                  __global void* arena, int first, int count) {
  volatile __global int* next = state;
  volatile __global int* done = state + LINE_INTS;
  volatile __global int* left = state + 2 * LINE_INTS;
  const int groups = get_global_size(0);
  __global const ulong *step = steps + first * STEP_WORDS, *end = step + count * STEP_WORDS;
  int waited = 0, seen = 0;
  while (waited < PAUSES) {
    const int item = *next;
    while (step < end && item >= (int)step[1] + items_of(step)) step += STEP_WORDS;
    if (step == end) break;
    const int finished = *done;
    if (finished < (int)step[1]) {  // by another group, which goes on
      waited = finished == seen ? waited + 1 : 0;
      seen = finished;
      PAUSE();
      continue;
    }
    waited = 0;
    // Long runs, for the tiles of a run fetch weights for the next of it (next_panel.clh).
    const int items = items_of(step), before = item - (int)step[1], rest = items - before;
    const int taken = min(max(rest / (SHARES * groups), 1 + items / (LEAST * groups)), rest);
    if (atomic_cmpxchg(next, item, item + taken) != item) continue;
    FENCE();  // what the steps before have written is seen from here on
    run_items(step, before, taken);
    FENCE();
    atomic_add(done, taken);
  }
  if (atomic_inc(left) == groups - 1) *next = *done = *left = 0;
}
