# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# Sourced by scripts that compile kernels for GPUs, a minute each: what passed is kept, and compiled again only where
# something that it was made of has changed. Expects `violations`, the number of those found so far, and `work`, a folder
# that the script removes at its end by `trap end_results EXIT`.

kept=""
kept_count=0
# keep_results TOOL...: TOOL are programs, with the libraries that they link, other files, or what a tool says of its
# version. With another tool, kernel or script it is another folder; one that was not used for a week goes.
keep_results() {
  local all=${BERTCL_COMPILED_KERNELS:-build/cache/compiled}/checks
  kept=$all/$({
    for tool in "$@"; do
      printf '%s\n' "$tool"
      [ ! -e "$tool" ] ||
        { echo "$tool"; ldd "$tool" 2>/dev/null | awk '$2 == "=>" { print $3 }'; } |
        xargs -d '\n' stat --dereference --format '%n %s %Y'
    done
    find kernels_cl "$(dirname "${BASH_SOURCE[0]}")" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
  } | sha256sum | cut -c 1-64)
  mkdir -p "$kept"
  touch "$kept"
  find "$all" -mindepth 1 -maxdepth 1 -ignore_readdir_race -mtime +7 -exec rm -rf {} +
}

# once FUNCTION ARGUMENTS...: what it prints, from an earlier run where it found no violation there.
once() {
  local before=$violations entry
  entry=$kept/$(printf '%s\0' "$@" | sha256sum | cut -c 1-64)
  if [ -e "$entry" ]; then
    kept_count=$((kept_count + 1))
    cat "$entry"
    return
  fi
  "$@" >"$work/printed_once"
  cat "$work/printed_once"
  # Renamed within one folder, so that no other run finds a part of it.
  if [ "$violations" -eq "$before" ]; then
    cp "$work/printed_once" "$entry.$$"
    mv "$entry.$$" "$entry"
  fi
  rm "$work/printed_once"
}

# Shows what a function has printed that ended the script, and leaves nothing.
end_results() {
  [ ! -e "$work/printed_once" ] || cat "$work/printed_once" >&2
  rm -rf "$work"
}
