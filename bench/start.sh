#!/usr/bin/env bash
# Time from Enter to the ranks' first lines and back to the prompt: phalanx, plain ssh (the floor), pdsh, clush, mpirun and torchrun on
# the same test cluster, taking turns. Needs root.
# Usage: bench/start.sh [BUILD_FOLDER] [--undisturbed] [--quick] [--json] [--rounds N] [--hosts 1,2,8] [--only METHOD]
# --undisturbed runs cluster and bench at real-time priority, for a machine that is busy with other things (which then wait).
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
build=build/train
if (($#)) && [[ $1 != --* ]]; then build=$1; shift; fi
priority=()
if [[ ${1:-} == --undisturbed ]]; then priority=(chrt --rr 1); shift; fi
build=$(readlink -f "$build")
phalanx=$build/phalanx rank=$build/bench/start_rank bench=$build/bench/start_time testbed=$build/tests/cluster/testbed
for program in "$phalanx" "$rank" "$bench" "$testbed"; do
  [[ -x $program ]] && continue
  printf 'error: %s is missing\nhint: cmake --build %s --target phalanx start_time start_rank testbed\n' "$program" "$build" >&2
  exit 2
done
((EUID == 0)) || { echo "bench start: skipped, the test cluster needs root" >&2; exit 0; }

most=1
for size in $(sed -n 's/.*--hosts \([0-9,]*\).*/\1/p' <<< "$*" | tr ',' ' '); do ((size <= most)) || most=$size; done
[[ $* == *--hosts* ]] || { most=64; [[ $* != *--quick* ]] || most=8; }
export TESTBED=bench-start-$$
"${priority[@]}" "$testbed" up "$most" || { code=$?; exit $((code == 3 ? 77 : code)); }  # 3: no cluster can be made here
"${priority[@]}" "$testbed" exec ctl "$bench" "$@" "$phalanx" "$rank"
