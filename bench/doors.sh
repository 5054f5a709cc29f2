#!/usr/bin/env bash
# What a front door adds to the start of a run: the same two ranks on this machine, started by `phalanx run` and by the lines of other
# launchers, taking turns. Wall time of the whole command, so that a door's files and decisions count.
# Usage: bench/doors.sh [BUILD_FOLDER]; ROUNDS=15 in the environment changes the plan.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
build=$(readlink -f "${1:-build/train}")
rounds=${ROUNDS:-15}
phalanx=$build/phalanx
[[ -x $phalanx ]] || { printf 'error: %s is missing\nhint: cmake --build %s --target phalanx\n' "$phalanx" "$build" >&2; exit 2; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_STATE_HOME=$folder HF_HOME=$folder/hf
cat > "$folder/config.yaml" <<'CONFIG'
compute_environment: LOCAL_MACHINE
distributed_type: MULTI_GPU
num_machines: 1
num_processes: 2
machine_rank: 0
mixed_precision: bf16
rdzv_backend: static
same_network: true
CONFIG
echo 'localhost slots=2' > "$folder/hosts"
source bench/median.sh

names=(run torchrun accelerate deepspeed)
run=("$phalanx" run --nproc-per-node 2 -- true)
torchrun=("$phalanx" torchrun --nproc-per-node 2 --no-python true)
accelerate=("$phalanx" accelerate launch --config_file "$folder/config.yaml" --no_python true)
deepspeed=("$phalanx" deepspeed --hostfile "$folder/hosts" --no_python --no_local_rank true)

# start NAME: milliseconds.
start() {
  local -n words=$1
  local begin=$EPOCHREALTIME end
  "${words[@]}" > "$folder/out" 2>&1 < /dev/null || { cat "$folder/out" >&2; exit 1; }
  end=$EPOCHREALTIME
  awk -v b="$begin" -v e="$end" 'BEGIN { printf "%.1f\n", (e - b) * 1000 }'
}

for name in "${names[@]}"; do start "$name" > /dev/null; done
for ((round = 0; round < rounds; round++)); do
  for name in "${names[@]}"; do start "$name" >> "$folder/$name"; done
done
echo "doors: two ranks (true) on this machine, without ssh; medians of $rounds rounds, taking turns; $(nproc) cores"
printf '%-12s %10s %14s\n' through ms 'beside run'
for name in "${names[@]}"; do
  median=$(median < "$folder/$name")
  [[ $name == run ]] && plain=$median
  # The difference is taken round by round: what slows the machine slows both.
  paste "$folder/$name" "$folder/run" | awk '{ print $1 - $2 }' | median | awk -v n="$name" -v m="$median" -v p="$plain" \
    '{ printf "%-12s %10.1f %+10.1f ms\n", n, m, $1 }'
done
