#!/usr/bin/env bash
# The same faults of a PyTorch training under `phalanx run` and under torchrun, on the test cluster of this machine, taking turns: named or
# not, seconds to the prompt, what is left. Needs root.
# With --live instead: all of tests/cluster/live_rows.cc under `phalanx run` with default options: deadlocks, slow trainings, healthy ones.
# Usage: bench/faults.sh [BUILD_FOLDER] [--quick] [--json] [--only NAME,…] [--cap SECONDS] | --live [NAME,…]
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
build=build/train
if (($#)) && [[ $1 != --* ]]; then build=$1; shift; fi
build=$(readlink -f "$build")
phalanx=$build/phalanx bench=$build/bench/faults
if [[ ${1-} == --live ]]; then
  LIVE_ROWS=${2-all} exec "$build/tests/cluster/cluster_live_test"
fi
for program in "$phalanx" "$bench"; do
  [[ -x $program ]] && continue
  printf 'error: %s is missing\nhint: cmake --build %s --target phalanx faults\n' "$program" "$build" >&2
  exit 2
done
exec "$bench" "$@" "$phalanx" "$PWD/tests/cluster/scripts"
