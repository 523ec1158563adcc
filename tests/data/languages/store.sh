#!/usr/bin/env bash
# Keeps parts in a file.
set -euo pipefail

source ./shelf.sh

readonly LIMIT=100
export PARTS="parts.txt"
opened=0

# Adds one part.
add_part() {
  local name="$1"
  if (( $(count_parts) >= LIMIT )); then
    fail "full: $name"
  fi
  echo "$name" >> "$PARTS"
}

function count_parts {
  wc -l < "$PARTS"
}

fail() { echo "$1" >&2; exit 1; }

main() {
  opened=1
  for name in "$@"; do
    add_part "$name"
  done
}

main "$@"
