#!/usr/bin/env bash
# Clients initialised per second: our store against PyTorch's own, on this machine's loopback, taking turns.
# Usage: bench/store.sh [BUILD_FOLDER]; CLIENTS="1000 9000" and ROUNDS=3 in the environment change the plan.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
load=${1:-build/train}/bench/store_load
python=${PYTHON:-/usr/bin/python3}
ulimit -Sn "$(ulimit -Hn)"
[[ -x $load ]] || { echo "error: $load is missing" >&2; echo "hint: cmake --build ${1:-build/train} --target store_load" >&2; exit 2; }
torch_version=$("$python" -c 'import torch; print(torch.__version__)' 2> /dev/null) || torch_version=
[[ -n $torch_version ]] || echo "bench store: $python has no torch (Debian: python3-torch): only our own server is measured" >&2
# What this PyTorch's server understands: modern from 2.2 on.
torch_dialect=$(awk -F. '{ print ($1 > 2 || ($1 == 2 && $2 >= 2)) ? "modern" : "legacy" }' <<< "$torch_version")
torch_server='import sys, torch.distributed as d
store = d.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
print(store.port, flush=True)
sys.stdin.read()'
ticks=$(getconf CLK_TCK)

# cpu PID: seconds of processor time so far. peak PID: largest memory so far, MiB.
cpu() { awk -v ticks="$ticks" '{ sub(/.*\) /, ""); print ($12 + $13) / ticks }' "/proc/$1/stat"; }
peak() { awk '/^VmHWM/ { print $2 / 1024 }' "/proc/$1/status"; }

# measure SERVER CLIENTS DIALECT: "seconds cpu-seconds MiB" of a fresh server.
measure() {
  local port seconds before after
  if [[ $1 == phalanx ]]; then coproc server { exec "$load" serve; }
  else coproc server { exec "$python" -c "$torch_server"; }; fi
  local pid=$server_PID out=${server[0]} in=${server[1]}
  read -r port <&"$out"
  before=$(cpu "$pid")
  seconds=$("$load" load "$port" "$2" "$3")
  after=$(cpu "$pid")
  echo "$seconds $(awk "BEGIN { print $after - $before }") $(peak "$pid")"
  exec {in}>&-
  wait "$pid" || true
}

source bench/median.sh
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

echo "store: clients initialised per second (connect, [validate, ping], add, set 128 B, wait, get 128 B), medians"
echo "one process serves, one plays all clients; $(nproc) cores, Linux $(uname -r), PyTorch ${torch_version:-none}"
printf '%8s  %-9s %-8s %12s %10s %12s %11s %10s\n' clients server dialect connections seconds clients/s 'server CPU' 'peak MiB'
for clients in ${CLIENTS:-1000 9000}; do
  if (($(ulimit -n) < 2 * clients + 64)); then
    echo "$clients clients skipped: they need $((2 * clients + 64)) descriptors, the hard limit is $(ulimit -Hn)"
    continue
  fi
  kinds=(phalanx:legacy phalanx:modern)
  [[ -z $torch_version ]] || kinds=(phalanx:legacy "pytorch:$torch_dialect" phalanx:modern)
  rounds=${ROUNDS:-$((clients > 2000 ? 3 : 7))}
  for ((round = 0; round < rounds; round++)); do
    for kind in "${kinds[@]}"; do
      measure "${kind%:*}" "$clients" "${kind#*:}" >> "$results/$clients-$kind"
    done
  done
  for kind in "${kinds[@]}"; do
    file=$results/$clients-$kind
    seconds=$(cut -d' ' -f1 "$file" | median)
    connections=$clients
    [[ $kind == *modern ]] || connections=$((2 * clients))
    printf '%8d  %-9s %-8s %12d %10.3f %12.0f %9.2f s %10.1f\n' "$clients" "${kind%:*}" "${kind#*:}" \
      "$connections" "$seconds" "$(awk "BEGIN { print $clients / $seconds }")" \
      "$(cut -d' ' -f2 "$file" | median)" "$(cut -d' ' -f3 "$file" | median)"
    declare "seconds_${kind/:/_}=$seconds"
  done
  theirs=seconds_pytorch_$torch_dialect ours=seconds_phalanx_$torch_dialect
  [[ -n $torch_version ]] || continue
  ratio=$(awk "BEGIN { print ${!theirs} / ${!ours} }")
  printf '%8d  phalanx is %.1f times as fast as PyTorch (same dialect, same load)\n' "$clients" "$ratio"
done
