#!/bin/sh
# coverage.sh BUILD LEAST: the share of the supervisor's branches that the simulated runs before it have taken, from the counters (.gcda)
# in the build folder BUILD; fails below LEAST per cent. With a third word it lists the lines of the branches that were never taken.
command -v gcov > /dev/null || { echo "SKIP: no gcov"; exit 77; }
cd "$1" || exit 1  # gcov finds the sources from where they were compiled
set -- tests/sim/CMakeFiles/simulate.dir/__/__/src/job "$2" "$3"
ls "$1"/*.gcda > /dev/null 2>&1 || { echo "error: no counters in $1: simulate has not run"; exit 1; }
for counters in "$1"/*.gcda; do
  name=$(basename "$counters" .gcda)
  gcov --stdout --branch-probabilities --branch-counts "$counters" 2> /dev/null | awk -v name="$name" -v list="$3" '
    /^ *-: *0:Source:/ { ours = ($0 ~ ("/job/" name "$")) }
    !ours { next }
    /^ *[0-9#=-]+\*?: *[0-9]+:/ { line = $0; told = 0 }
    /^branch/ {
      all++
      if ($0 ~ /taken 0( |$)|never executed/) { if (list && !told++) print name ": " line } else taken++
    }
    END { printf "%d %d %s\n", taken, all, name }'
done | awk -v least="$2" '
  NF != 3 || $1 !~ /^[0-9]+$/ { print; next }
  { printf "%-24s %4d of %4d branches\n", $3, $1, $2; taken += $1; all += $2 }
  END {
    printf "%-24s %4d of %4d branches, %.1f %% (at least %s)\n", "all", taken, all, 100 * taken / all, least
    exit all == 0 || 100 * taken / all < least
  }'
