#!/usr/bin/env bash
# Fine-tuning beside PyTorch: seconds per step and peak memory of the same LoRA and full tuning, in one run, taking turns.
# Usage: bench/finetune.sh [BUILD_FOLDER] [--quick] [--json] [--only NAME,…] (bench/finetune_turns.py --help)
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
build=build/train
if (($#)) && [[ $1 != --* ]]; then build=$1; shift; fi
ours=$(readlink -f "$build")/bench/finetune_speed
[[ -x $ours ]] || { printf 'error: %s is missing\nhint: cmake --build %s --target finetune_speed\n' "$ours" "$build" >&2; exit 2; }
/usr/bin/python3 -c 'import torch' 2> /dev/null || { echo "bench finetune: skipped, /usr/bin/python3 has no torch" >&2; exit 0; }
PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 bench/finetune_turns.py "$ours" "$@"
