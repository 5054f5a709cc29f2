#!/usr/bin/env bash
# static.sh PROGRAM MOST_BYTES: launcher, agent and phalanx-env must run on any Linux of their architecture: no interpreter, no library,
# no libtorch.
set -euo pipefail
program=$1
most_bytes=$2

# Prints what is wrong with a program; nothing when it is as the launcher must be.
faults() {
  if readelf -lW "$1" | grep -q INTERP; then echo "asks for an interpreter"; fi
  readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/needs \1/p'
  # A release program has no symbols left; they lie beside it.
  local symbols table=$1
  if [[ -e $1.debug ]]; then table=$1.debug; fi
  symbols=$(readelf -sW "$table" | grep -cE ' _ZNK?(3c10|5torch|2at|4c10d)' || true)
  if ((symbols > 0)); then echo "has $symbols symbols of libtorch"; fi
  local bytes
  bytes=$(stat -Lc %s "$1")
  if ((bytes >= most_bytes)); then echo "is $bytes bytes long; less than $most_bytes is wanted"; fi
}

# The check itself must be able to fail.
[[ $(faults "$(command -v bash)") == *"asks for an interpreter"*"needs libc.so.6"* ]] ||
  { echo "the check does not see a dynamic program"; exit 1; }

if [[ -e $program.debug && $(readelf -sW "$program.debug" | grep -c ' FUNC ') -lt 1000 ]]; then
  echo "$program.debug has no symbols to look through"; exit 1
fi
found=$(faults "$program")
if [[ -n $found ]]; then printf '%s:\n%s\n' "$program" "$found"; exit 1; fi
echo "$program: static, $(stat -Lc %s "$program") bytes"

# In an empty root there is nothing it could lean on.
if ((EUID != 0)); then echo "not root: not run in an empty root"; exit 0; fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
cp "$program" "$root/phalanx"
# The agent says who starts it, with code 2.
env -i /usr/sbin/chroot "$root" /phalanx version || (($? == 2))
