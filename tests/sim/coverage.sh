#!/bin/sh
# coverage.sh BUILD LEAST: the share of the supervisor's branches that the simulated runs before it have taken, from the counters (.gcda)
# in the build folder BUILD; fails below LEAST per cent. With a third word it lists the lines of the branches that were never taken.
command -v gcov > /dev/null || { echo "SKIP: no gcov"; exit 77; }
cd "$1" || exit 1  # gcov finds the sources from where they were compiled
least=$2 list=$3
counters=$(find tests/sim/CMakeFiles/sim_supervisor.dir -name '*.gcda')
[ "$counters" ] || { echo "error: no counters in $1: simulate has not run"; exit 1; }
# One file of counters stands for a group of sources and the headers they include.
for file in $counters; do
  gcov --stdout --branch-probabilities --branch-counts "$file" 2> /dev/null | awk -v list="$list" '
    /^ *-: *0:Source:/ {
      name = ""
      if (match($0, /\/src\/job\/([a-z_]+\/)?[a-z_]+\.cc$/)) name = substr($0, RSTART + 9)
    }
    name == "" { next }
    /^ *[0-9#=-]+\*?: *[0-9]+:/ { line = $0; told = 0 }
    /^branch/ {
      all[name]++
      if ($0 ~ /taken 0( |$)|never executed/) { if (list && !told++) print name ": " line } else taken[name]++
    }
    END { for (name in all) printf "%d %d %s\n", taken[name], all[name], name }'
done | awk -v least="$least" '
  NF != 3 || $1 !~ /^[0-9]+$/ { print; next }
  { printf "%-24s %4d of %4d branches\n", $3, $1, $2; taken += $1; all += $2 }
  END {
    printf "%-24s %4d of %4d branches, %.1f %% (at least %s)\n", "all", taken, all, 100 * taken / all, least
    exit all == 0 || 100 * taken / all < least
  }'
