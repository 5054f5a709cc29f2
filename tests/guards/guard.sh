#!/usr/bin/env bash
# guard.sh WHAT BUILD [LIMITS]: measures what ./x test and the launcher cost and compares it with the recorded limits (limits.tsv). Prints
# "GUARD: ..." lines, which ./x test repeats at its end. Exit 1 when something grew past its limit, 77 when it cannot be measured here.
#   size      bytes of the launcher
#   start     start of a job on 8 hosts, as a ratio to ssh in the same rounds
#   env       env push of a small environment to 2 hosts, as a ratio to tar over ssh in the same rounds; a second push; memory
#   compile   the ten slowest files of a full build, the slowest as a ratio to the mean
#   duration  of ./x test as a ratio to the compile time of its build
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
what=$1 build=$(readlink -f "$2") limits=${3:-$here/limits.tsv}
failed=0

skip() { echo "SKIP: $*"; exit 77; }

# run_bench BENCH ARGUMENT...: runs a bench; its stdout goes to $report. A bench that ends with 77 cannot measure here and says why; any
# other code is a failure.
run_bench() {
  local said=$build/guard_said code=0
  PATH=$PATH:/usr/sbin "$here/../../bench/$1" "${@:2}" > "$report" 2> "$said" || code=$?
  cat "$said" >&2
  ((code != 77)) || skip "bench/$1 cannot measure here: $(sed -n 's/^error: //p' "$said" | tail -n 1)"
  ((code == 0)) || { echo "error: bench/$1 ended with $code"; exit 1; }
}

# hold NAME VALUE WORDS REMEDY: prints the value with its limit; over the limit is a failure.
hold() {
  local limit unit
  IFS=$'\t' read -r limit unit < <(awk -F '\t' -v name="$1" '$1 == name { print $2 "\t" $3 }' "$limits") ||
    { echo "error: $limits has no limit for $1"; exit 1; }
  [[ $2 =~ ^[0-9]+(\.[0-9]+)?$ ]] || { echo "error: $3 was not measured: '$2' is not a number"; exit 1; }
  echo "GUARD: $3: $2 (limit $limit $unit)"
  if awk -v value="$2" -v limit="$limit" 'BEGIN { exit !(value > limit) }'; then
    echo "error: $3 has grown to $2, over its limit of $limit $unit"
    echo "hint: $4; if the growth is worth it, raise $1 in tests/guards/limits.tsv and say why"
    failed=1
  fi
}

# Of a full build, "seconds object" per line; a step that wrote several files counts once.
steps() { awk -F '\t' 'NR > 1 && /\.o\t/ && !seen[$1, $2, $5]++ { printf "%.1f\t%s\n", ($2 - $1) / 1000, $4 }' "$build/.ninja_log"; }

# What a group of sources was made of is in its file; here its name tells the folder.
short_name() { sed -e 's|CMakeFiles/||' -e 's|\.dir/|/|' -e 's|Unity/unity_\([0-9]*\)_cxx\.cxx\.o|group \1|' -e 's|\.cc\.o$|.cc|'; }

guard_size() {
  hold binary_size "$(stat -Lc %s "$build/phalanx")" "size of the launcher" \
    "find what grew with 'bloaty' or 'nm -S --size-sort -C $build/phalanx | tail -40'"
}

guard_start() {
  ((EUID == 0)) || skip "needs root"
  local report=$build/guard_start
  run_bench start.sh "$build" --hosts 8 --rounds 3 --only phalanx --json
  local cold kept
  read -r cold kept < <(python3 -c '
import json, sys
rows = [row for row in json.load(sys.stdin)["rows"] if row["hosts"] == 8]
for name in ("phalanx", "phalanx, connections kept"):
    print("%.2f" % next(row["last_ratio"] for row in rows if row["method"] == name), end=" ")
print()
' < "$report")
  local hint="see where the time goes in the run's event log (phalanx logs), and compare with ./x bench start"
  hold start_cold "$cold" "job start on 8 hosts against ssh" "$hint"
  hold start_kept "$kept" "job start on 8 hosts against ssh, connections kept" "$hint"
}

guard_env() {
  ((EUID == 0)) || skip "needs root"
  local report=$build/guard_env name value
  HOSTS=2 FILES=1500 BYTES=60000000 ROUNDS=1 WAYS=tar run_bench env.sh "$build" --ratios
  local hint="see where the time goes with ./x bench env, which says each time as it goes with VERBOSE=1"
  local measured=0
  while read -r name value; do
    measured=$((measured + 1))
    case $name in
      one_tar) hold env_push_one "$value" "env push to 1 host against tar over ssh" "$hint" ;;
      all_tar) hold env_push_all "$value" "env push to 2 hosts against tar over ssh" "$hint" ;;
      again) hold env_push_again "$value" "env push of ten changed files against the first one" "$hint" ;;
      memory) hold env_push_memory "$value" "largest process of env push" "see what it keeps of each file: heaptrack, massif" ;;
      *) echo "error: bench/env.sh measured $name, which no limit is for"; exit 1 ;;
    esac
  done < "$report"
  ((measured == 4)) || { echo "error: bench/env.sh measured $measured of 4 things"; exit 1; }
}

guard_compile() {
  [[ -n ${PHALANX_FULL_BUILD:-} ]] || skip "not a full build"
  local mean slowest
  steps | sort -rn | head -n 10 | short_name | while IFS=$'\t' read -r seconds name; do echo "GUARD: compiled in $seconds s: $name"; done
  mean=$(steps | awk '{ all += $1 } END { print all / NR }')
  slowest=$(steps | sort -rn | awk -v mean="$mean" 'NR == 1 { printf "%.1f", $1 / mean }')
  hold slowest_file "$slowest" "slowest file to compile against the mean" \
    "divide the file, or see what it includes: clang++ -ftime-trace"
}

guard_duration() {
  [[ -n ${PHALANX_FULL_BUILD:-} ]] || skip "not a full build"
  local compiled duration ratio
  compiled=$(steps | awk '{ all += $1 } END { printf "%d", all }')
  duration=$(($(date +%s) - PHALANX_TEST_STARTED))
  ratio=$(awk -v d="$duration" -v c="$compiled" -v n="$(nproc)" 'BEGIN { printf "%.1f", d / (c / n) }')
  echo "GUARD: ./x test has taken $duration s so far, compiling build/train $compiled s of processor time"
  hold test_duration "$ratio" "duration of ./x test against its build" \
    "see the slowest tests above, and HACKING.md for how long a test may take"
}

"guard_$what"
exit "$failed"
