// SPDX-License-Identifier: Apache-2.0
// The first element of a float tensor that is NaN, or NaN or infinite.
//
//   words      count elements of 32 bits (wide 1) or of 16 (wide 0)
//   least      smallest bits without their sign that are looked for: those of infinity, or one more
//   found      int[], found[number] becomes the index of the first such element if it is larger
//
// Grid: (ceil(count / chunk)), any local size; each work-item looks at `chunk` elements.
// Bounds: count + chunk < 2^31.
__kernel void find_nonfinite(__global const void* words, int wide, int count, int least,
                             __global int* found, int number, int chunk) {
  const int first = (int)get_global_id(0) * chunk, last = min(first + chunk, count);
  __global const int* ints = words;
  __global const short* shorts = words;
  for (int i = first; i < last; i += 16) {
    int16 hits = 0;
    if (i + 16 <= last)
      hits = wide ? (vload16(0, ints + i) & 0x7fffffff) >= least
                 : (convert_int16(vload16(0, shorts + i)) & 0x7fff) >= least;
    else
      hits.s0 = -1;
    if (!any(hits)) continue;
    for (int t = i; t < min(i + 16, last); t++)
      if ((wide ? ints[t] & 0x7fffffff : shorts[t] & 0x7fff) >= least) {
        atomic_min(found + number, t);
        return;
      }
  }
}
