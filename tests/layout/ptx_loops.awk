# SPDX-License-Identifier: Apache-2.0
# What a GPU would do slowly in the loops of PTX: "ENTRY BYTES LOCAL" for each entry of the file, the
# numbers of stores of single bytes to global memory and of accesses to local memory (the private
# arrays that are not in registers) between a label and a later branch back to it.
/^\.visible \.entry|^\.entry/ {
  finish()
  entry = $0
  sub(/.*\.entry +/, "", entry)
  sub(/\(.*/, "", entry)
}
/^\$?[A-Za-z_0-9$]+:/ {
  label = $1
  sub(/:.*/, "", label)
  at[label] = NR
}
/st\.global\.[ub]8/ { bytes[NR] = 1 }
/(ld|st)\.local/ { locals[NR] = 1 }
/[ \t]bra/ {
  target = $NF
  sub(/;.*/, "", target)
  if (target in at) for (i = at[target]; i <= NR; i++) in_loop[i] = 1
}
END { finish() }
function finish(    i, b, l) {
  if (entry != "") {
    for (i in bytes) b += i in in_loop
    for (i in locals) l += i in in_loop
    print entry, b + 0, l + 0
  }
  delete at; delete bytes; delete locals; delete in_loop
}
