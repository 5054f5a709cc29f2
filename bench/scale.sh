#!/usr/bin/env bash
# What a launcher costs by the number of its hosts: one real launcher, 8 ranks per host, all agents played by one process of this machine.
# Needs no root; the soft limit of descriptors is 1024, as a login has it, the hard limit must allow 3 for each host.
# Usage: bench/scale.sh [BUILD_FOLDER] [--undisturbed] [--quick] [--json] [--hosts 64,256,1024] [--ranks N]
# --undisturbed runs it at real-time priority, for a machine that is busy with other things (which then wait). Needs root.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
build=build/train
if (($#)) && [[ $1 != --* ]]; then build=$1; shift; fi
priority=()
if [[ ${1:-} == --undisturbed ]]; then priority=(chrt --rr 1); shift; fi
build=$(readlink -f "$build")
programs=("$build/bench/scale" "$build/phalanx" "$build/bench/scale_ssh")
for program in "${programs[@]}"; do
  [[ -x $program ]] && continue
  printf 'error: %s is missing\nhint: cmake --build %s --target phalanx scale scale_ssh\n' "$program" "$build" >&2
  exit 2
done
exec "${priority[@]}" "${programs[0]}" "$@" "${programs[@]:1}"
