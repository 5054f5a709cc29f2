#!/usr/bin/env bash
# The engine beside PyTorch: steps per second and peak memory of the same training, in one run, taking turns.
# Usage: bench/train.sh [BUILD_FOLDER] [--quick] [--json] [--rounds N] [--only NAME,…] (bench/train_turns.py --help)
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
build=build/train
if (($#)) && [[ $1 != --* ]]; then build=$1; shift; fi
ours=$(readlink -f "$build")/bench/train_speed
[[ -x $ours ]] || { printf 'error: %s is missing\nhint: cmake --build %s --target train_speed\n' "$ours" "$build" >&2; exit 2; }
/usr/bin/python3 -c 'import torch' 2> /dev/null || { echo "bench train: skipped, /usr/bin/python3 has no torch" >&2; exit 0; }
/usr/bin/python3 bench/train_turns.py "$ours" "$@"
