// SPDX-License-Identifier: Apache-2.0
// Two steps that test whether persistent.cl runs here: a driver must compile functions of several
// programs separately, link them, keep buffer addresses stable, and let work-groups wait for each
// other.
//
//   probe_ramp    out[i] = value + 2 i
//   probe_sum     out[i] = (int)(scale * sum of in[0, count)) + i
//
// Grid: any for probe_ramp, i counts its items; (n) for probe_sum; work-group (1,1,1).
#include "persistent/place.clh"

ONE_ITEM KERNEL probe_ramp(__global int* out, const int value PLACE_PARAMETER) {
  const int3 at = PLACE.id, size = PLACE.size;
  const int i = (at.z * size.y + at.y) * size.x + at.x;
  out[i] = value + 2 * i;
}
MERGEABLE(probe_ramp, (POINTER(0), INTEGER(1), STEP_PLACE))

ONE_ITEM KERNEL probe_sum(__global const int* in, const int count, const float scale,
                          __global int* out PLACE_PARAMETER) {
  int sum = 0;
  for (int i = 0; i < count; i++) sum += in[i];
  out[PLACE.id.x] = (int)(sum * scale) + PLACE.id.x;
}
MERGEABLE(probe_sum, (POINTER(0), INTEGER(1), FLOAT(2), POINTER(3), STEP_PLACE))
