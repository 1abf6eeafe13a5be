# SPDX-License-Identifier: Apache-2.0
# Whether a GEMM in AMD's assembly waits for the next strip before it multiplies this one: prints
# "LOADS WAITS", the numbers of loads of words from global memory on the way from the first barrier in
# the loop along K to the first of `products` (a regular expression), and of waits for them there.
# With a load on its way, branches that no lane has to take are not taken: they load the bytes of an
# end of K. Other conditions do not hold.
{ line[NR] = $0 }
/^[.A-Za-z_0-9$]+:/ {
  label = $1
  sub(/:.*/, "", label)
  at[label] = NR
}
/^[ \t]+s_barrier/ && !start { start = NR }
END {
  for (i = start; i in line && steps++ < NR; i++) {
    $0 = line[i]
    if ($1 ~ products) break
    if ($1 ~ /^global_load_(dword|b32|b64|b128)/) loads++
    if (loads && ($0 ~ /s_waitcnt.*vmcnt\(/ || $1 == "s_wait_loadcnt")) waits++
    if ($1 == "s_branch" || $1 == "s_cbranch_execz" && loads) i = at[$2]
  }
  print loads + 0, waits + 0
}
