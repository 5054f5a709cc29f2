#!/usr/bin/env bash
# How long `phalanx explain` takes for a log of 1 GB, and how much memory, beside grep over the same file with the same words. The log is
# made by bench/log_of_a_run.cc; page cache warm, taking turns, medians.
# Usage: bench/explain.sh [BUILD_FOLDER]; BYTES=1000000000 and ROUNDS=3 in the environment change the plan.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
build=$(readlink -f "${1:-build/train}")
phalanx=$build/phalanx
maker=$build/bench/log_of_a_run
[[ -x $phalanx && -x $maker ]] || { echo "error: $phalanx or $maker is missing" >&2; echo "hint: ./x build" >&2; exit 2; }
bytes=${BYTES:-1000000000}
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
source bench/median.sh

"$maker" "$bytes" > "$results/run.log"
gzip -1 -k "$results/run.log"
# The literals that explain looks for: the third field of each row.
sed -n "s/^  literal: '\\(.*\\)'\$/\\1/p" codes/signatures/*.yaml | sed "s/''/'/g" |
  grep -E '.{4}' | sort -u > "$results/literals"
[[ -s $results/literals ]] || { echo "error: no literals found in codes/signatures/" >&2; exit 2; }
cat "$results/run.log" > /dev/null

# grep stops at the first match when it sees /dev/null, so its output is read.
# Less memory than that of Python itself (14 MiB) cannot be seen.
# timed NAME COMMAND...: adds seconds and KiB of memory to NAME's lists. A program that finds nothing ends with 1.
timed() {
  local name=$1 code=0
  shift
  python3 - "$results/$name" "$@" << 'EOF' || code=$?
import os, resource, subprocess, sys, time
begin = time.monotonic()
code = subprocess.run(sys.argv[2:], stdout=subprocess.PIPE if sys.argv[2] != 'cat' else subprocess.DEVNULL).returncode
seconds = time.monotonic() - begin
memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
with open(sys.argv[1] + '.seconds', 'a') as f: print(seconds, file=f)
with open(sys.argv[1] + '.memory', 'a') as f: print(memory, file=f)
sys.exit(0 if code in (0, 1) else code)
EOF
  ((code == 0)) || { echo "error: $name exited with code $code" >&2; exit 1; }
}

for ((round = 0; round < ${ROUNDS:-3}; round++)); do
  timed explain "$phalanx" explain "$results/run.log"
  timed gzip "$phalanx" explain "$results/run.log.gz"
  LC_ALL=C timed grep grep -c -F -f "$results/literals" "$results/run.log"
  if command -v rg > /dev/null; then timed rg rg -c -F -f "$results/literals" "$results/run.log"; fi
  timed cat cat "$results/run.log"
done

echo "explain: a log of $(awk "BEGIN { printf \"%.2f\", $bytes / 1e9 }") GB, medians of ${ROUNDS:-3}; $(nproc) cores, Linux $(uname -r)"
printf '%-46s %10s %12s\n' program seconds memory
row() {
  [[ -s $results/$2.seconds ]] || return 0
  local kib
  kib=$(median < "$results/$2.memory")
  printf '%-46s %10.2f %8.1f MiB\n' "$1" "$(median < "$results/$2.seconds")" "$(awk "BEGIN { print $kib / 1024 }")"
}
row 'phalanx explain' explain
row 'phalanx explain, gzipped' gzip
row "grep -c -F -f ($(wc -l < "$results/literals") words)" grep
row 'rg -c -F -f' rg
row 'cat' cat
