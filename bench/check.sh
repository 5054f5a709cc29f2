#!/usr/bin/env bash
# How long `phalanx check` takes, beside `pdsh` of a shell script that collects a tenth of it; what a start pays for it; and what a host
# that hangs costs. On the test cluster of this machine, taking turns. Needs root.
# Usage: bench/check.sh [BUILD_FOLDER]; HOSTS="8 32" and ROUNDS=5 in the environment change the plan.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
build=$(readlink -f "${1:-build/train}")
phalanx=$build/phalanx
export TESTBED=check-bench-$$
testbed=$build/tests/cluster/testbed
[[ -x $phalanx && -x $testbed ]] || { echo "error: $phalanx or $testbed is missing" >&2; echo "hint: ./x build" >&2; exit 2; }
results=$(mktemp -d)
trap '"$testbed" down > /dev/null 2>&1 || true; rm -rf "$results"' EXIT
source bench/median.sh

# The tenth of a check that people collect by hand: name, kernel, memory, disk, addresses, routes, Python, torch, limits, clock.
by_hand='hostname; uname -r; free -m; df -h / /dev/shm; ip -br addr; ip route; python3 --version; ulimit -n; date +%s.%N
  grep -h ^Version: /usr/lib/python3/dist-packages/torch-*/METADATA 2> /dev/null | head -n 1'

# timed NAME COMMAND...: seconds from Enter to the prompt on ctl, added to NAME's; a check that finds errors ends with 3.
timed() {
  local name=$1 begin end code=0
  shift
  begin=$(date +%s%N)
  "$testbed" exec ctl "$@" > "$results/last" 2>&1 || code=$?
  end=$(date +%s%N)
  ((code == 0 || code == 3)) || { echo "error: $name exited with code $code:" >&2; tail -n 5 "$results/last" >&2; exit 1; }
  awk "BEGIN { print ($end - $begin) / 1e9 }" >> "$results/$name"
}

echo "check: seconds from Enter to the prompt, medians of ${ROUNDS:-5}; $(nproc) cores, Linux $(uname -r)"
row='%6s %12s %12s %12s %14s %14s %12s %12s\n'
# shellcheck disable=SC2059
printf "$row" hosts 'check cold' 'check warm' 'pdsh script' 'run preflight' 'run without' added 'one frozen'
for hosts in ${HOSTS:-8 32}; do
  "$testbed" up "$hosts" --detach > /dev/null
  list=$(seq -s, -f 'h%.0f' "$hosts")
  rm -f "$results"/[a-z]*
  timed deploy "$phalanx" check -H "$list"
  for ((round = 0; round < ${ROUNDS:-5}; round++)); do
    "$testbed" exec ctl sh -c 'pkill -x ssh || true; rm -rf ~/.cache/phalanx/ssh /run/user/*/phalanx /tmp/phalanx-ssh-*'
    timed cold "$phalanx" check -H "$list"
    timed warm "$phalanx" check -H "$list"
    if command -v pdsh > /dev/null; then timed pdsh pdsh -R ssh -f "$hosts" -w "$list" "$by_hand"; fi
    timed run "$phalanx" run --preflight warn -H "$list" -- true
    timed bare "$phalanx" run --preflight off -H "$list" -- true
  done
  "$testbed" freeze "h$hosts"
  timed frozen sh -c "$phalanx check -H $list; exit 0"
  "$testbed" heal "h$hosts"
  m() { if [[ -s $results/$1 ]]; then printf '%.2f s' "$(median < "$results/$1")"; else printf -- -; fi; }
  added=$(awk "BEGIN { printf \"%.2f s\", $(median < "$results/run") - $(median < "$results/bare") }")
  # shellcheck disable=SC2059
  printf "$row" "$hosts" "$(m cold)" "$(m warm)" "$(m pdsh)" "$(m run)" "$(m bare)" "$added" "$(m frozen)"
  "$testbed" down > /dev/null
done
