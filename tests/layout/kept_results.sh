# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# Sourced by scripts that compile kernels for GPUs, a minute each: what passed is kept, and compiled again only where
# something that it was made of has changed. Expects `violations`, the number of those found so far.

kept=""
kept_count=0
# keep_results TOOL...: TOOL are files of compilers and libraries, or what they say of their version. With another tool,
# kernel or script it is another folder; one that was not used for a week goes.
keep_results() {
  local all=${BERTCL_COMPILED_KERNELS:-build/cache/compiled}/checks
  kept=$all/$({
    for tool in "$@"; do stat --dereference --format '%n %s %Y' "$tool" 2>/dev/null || printf '%s\n' "$tool"; done
    find kernels_cl "$(dirname "${BASH_SOURCE[0]}")" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
  } | sha256sum | cut -c 1-64)
  mkdir -p "$kept"
  touch "$kept"
  find "$all" -mindepth 1 -maxdepth 1 -ignore_readdir_race -mtime +7 -exec rm -rf {} +
}

# once FUNCTION ARGUMENTS...: what it prints, from an earlier run where it found no violation there.
once() {
  local before=$violations entry file
  entry=$kept/$(printf '%s\0' "$@" | sha256sum | cut -c 1-64)
  if [ -e "$entry" ]; then
    kept_count=$((kept_count + 1))
    cat "$entry"
    return
  fi
  file=$(mktemp "$kept/XXXXXX.new")
  "$@" >"$file"
  cat "$file"
  if [ "$violations" -eq "$before" ]; then mv "$file" "$entry"; else rm "$file"; fi
}
