#!/bin/bash

plain() {
  echo "$1"
}

sort_out() {
  for value in "$@"; do
    if [ "$value" = "$WANTED" ] && [ -n "$value" ]; then
      plain "$value"
    fi
  done
}
