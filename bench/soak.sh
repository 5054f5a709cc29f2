#!/usr/bin/env bash
# Trainings that lose a host at a random step: 50 of them, 20 minutes. Needs root. Usage: bench/soak.sh [BUILD_FOLDER] [soak's options]
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
build=$(readlink -f "${1:-build/train}")
shift || true
[[ -x $build/phalanx-train && -x $build/bench/soak ]] || {
  echo "error: $build/phalanx-train or $build/bench/soak is missing" >&2
  echo "hint: ./x build" >&2
  exit 2
}
folder=$(mktemp -d "$build/soak-XXXXXX")
trap 'rm -rf "$folder"' EXIT
"$build/bench/soak" "$@" "$folder" "$build/phalanx" "$PWD/docs/commands.md"
