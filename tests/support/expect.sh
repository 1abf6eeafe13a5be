# SPDX-License-Identifier: Apache-2.0
# What scripts that test scripts begin with: a folder of their own, programs that are made up, and what is expected.
work=$(cd "$(mktemp -d)" && pwd -P)
trap 'rm -rf "$work"' EXIT
failures=0

program() {  # program FILE TEXT: a program in bash
  printf '#!/bin/bash\n%s\n' "$2" >"$1"
  chmod +x "$1"
}
expect() {  # expect WHAT yes|no PATTERN TEXT|FILE
  local found=no text=$4
  [ ! -f "$4" ] || text=$(<"$4")
  ! grep -qE -e "$3" <<<"$text" || found=yes
  if [ "$found" != "$2" ]; then
    printf 'FAILED: %s: expected "%s" %s, found\n%s\n' "$1" "$3" "$2" "$text"
    failures=$((failures + 1))
  fi
}
end_of_test() {  # its status is that of the test
  echo "$(basename "$0"): $failures failures"
  [ "$failures" -eq 0 ]
}
