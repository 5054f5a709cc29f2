#!/usr/bin/env bash
# Lines per second from 1 and 8 hosts of the test cluster through phalanx and its peers, taking turns. One rank per host writes
# as fast as it can; a judge reads the launcher's stdout through a pipe and counts what is lost or torn. Needs root.
# Usage: bench/output.sh [BUILD_FOLDER]; ROUNDS=3, HOSTS="1 8", LINES=800000 (of all ranks together) and BYTES=100 (per line)
# in the environment change the plan.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
build=$(readlink -f "${1:-build/train}")
rounds=${ROUNDS:-3} total=${LINES:-800000} bytes=${BYTES:-100}
phalanx=$build/phalanx flood=$build/bench/line_flood testbed=$build/tests/cluster/testbed
for program in "$phalanx" "$flood" "$testbed"; do
  [[ -x $program ]] && continue
  printf 'error: %s is missing\nhint: cmake --build %s --target phalanx line_flood testbed\n' "$program" "$build" >&2
  exit 2
done
((EUID == 0)) || { echo "bench output: skipped, the test cluster needs root" >&2; exit 0; }

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
export TESTBED=bench-output-$$

# command PEER HOSTS LINES: what is typed on ctl, as one line of bash. Every host's rank follows from its name.
command() {
  local hosts write="$flood write $3 $bytes"
  hosts=$(seq -s, -f 'h%g' "$2")
  case $1 in
    phalanx) echo "$phalanx run -q --log-dir /tmp/runs -H $hosts --nproc-per-node 1 -- $write" ;;
    pdsh) echo "pdsh -R ssh -f 64 -w $hosts $write" ;;
    clush) echo "clush -f 64 -w $hosts $write" ;;
    mpirun) echo "mpirun --allow-run-as-root --tag-output --map-by node -np $2 --host $hosts $write" ;;
    ssh) echo "bash -c 'for h in ${hosts//,/ }; do ssh \$h $write & done; wait'" ;;
  esac
}

# measure PEER HOSTS: one line "seconds bytes whole lost torn disorder wall KiB exit-code".
measure() {
  local lines=$((total / $2))
  "$testbed" exec ctl bash -c "rm -rf /tmp/runs; $flood measure /tmp/usage $(command "$1" "$2" "$lines") 2> /tmp/talk < /dev/null |
    $flood check $2 $lines $bytes | tr '\n' ' '; cat /tmp/usage; [[ \$(cut -d' ' -f3 /tmp/usage) == 0 ]] || tail -n 5 /tmp/talk >&2"
}

source bench/median.sh
# worst FILE COLUMN, middle FILE COLUMN: over the rounds.
worst() { awk -v c="$2" '$c > m { m = $c } END { print m + 0 }' "$1"; }
middle() { awk -v c="$2" '{ print $c }' "$1" | median; }

peers=(phalanx)
for peer in pdsh clush mpirun ssh; do
  if type -P "$peer" > /dev/null; then peers+=("$peer"); else echo "bench output: $peer is not installed, not measured" >&2; fi
done
most=$(tr ' ' '\n' <<< "${HOSTS:-1 8}" | sort -n | tail -n 1)
"$testbed" up "$most"
echo "output: $total lines of $bytes bytes, one rank per host, medians of $rounds rounds; from the first byte to the last"
echo "$(nproc) cores shared by launcher, hosts, ranks and judge; Linux $(uname -r); phalanx also writes every rank's log"
for hosts in ${HOSTS:-1 8}; do
  for ((round = 0; round < rounds; round++)); do
    for peer in "${peers[@]}"; do measure "$peer" "$hosts" >> "$results/$hosts-$peer"; done
  done
  printf '\n%5s  %-8s %12s %9s %9s %9s %11s %10s %6s\n' hosts through lines/s MB/s lost torn disordered 'peak MiB' exit
  best=0
  for peer in "${peers[@]}"; do
    file=$results/$hosts-$peer
    seconds=$(middle "$file" 1)
    rate=$(awk -v s="$seconds" -v n="$(middle "$file" 3)" 'BEGIN { printf "%.0f", (s > 0 ? n / s : 0) }')
    printf '%5d  %-8s %12s %9.1f %9d %9d %11d %10.1f %6d\n' "$hosts" "$peer" "$rate" "$(awk "BEGIN { print $rate * $bytes / 1e6 }")" \
      "$(worst "$file" 4)" "$(worst "$file" 5)" "$(worst "$file" 6)" \
      "$(awk "BEGIN { print $(worst "$file" 8) / 1024 }")" "$(worst "$file" 9)"
    flawed=$(awk "BEGIN { print $(worst "$file" 4) + $(worst "$file" 5) }")
    if [[ $peer == phalanx ]]; then ours=$rate; fi
    if [[ $peer != phalanx && $flawed == 0 ]] && ((rate > best)); then best=$rate best_peer=$peer; fi
  done
  if ((best > 0)); then
    awk -v n="$hosts" -v ratio="$(awk "BEGIN { print $ours / $best }")" -v peer="$best_peer" \
      'BEGIN { printf "%5d  phalanx is %.1f times the best peer that kept every line whole (%s)\n", n, ratio, peer }'
  else
    printf '%5d  no peer kept every line whole\n' "$hosts"
  fi
done
