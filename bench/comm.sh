#!/usr/bin/env bash
# The engine's collectives beside torch.distributed over Gloo; see comm.py.
# Usage: bench/comm.sh [BUILD_FOLDER] [--quick] [--json] [--ranks 2,4] [--rounds N] [--one-host]
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
build=build/train
if [[ $# -gt 0 && $1 != --* ]]; then build=$1; shift; fi
exec /usr/bin/python3 bench/comm.py "$(readlink -f "$build")" "$@"
