#!/bin/sh
# Leaves its arguments and environment, NUL after each, where the test can read them byte by byte.
[ $# -eq 0 ] || printf '%s\0' "$@" > "/tmp/args-$RANK"
env -0 > "/tmp/env-$RANK"
echo "rank $RANK of $WORLD_SIZE: $# arguments on $(hostname) in $PWD"
