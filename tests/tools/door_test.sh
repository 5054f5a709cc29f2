#!/usr/bin/env bash
# ./x itself, in a project that holds nothing else, with a build and tests that are played: what is lost is not counted as passed, two do
# not work in one clone, nothing goes on behind an error. Usage: door_test.sh PROJECT
set -euo pipefail
project=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 711 "$folder"
clone="$folder/a clone"
mkdir -p "$clone/tools" "$folder/bin"
cp "$project/x" "$clone/"
cp "$project/tools/count_tests.awk" "$clone/tools/"
cd "$folder"
unset PHALANX_DOOR PHALANX_FUZZ_SECONDS
export PATH=$folder/bin:$PATH
failed=0

# play PROGRAM: standard input is what stands in for it.
play() { { echo '#!/bin/bash'; cat; } > "bin/$1" && chmod 755 "bin/$1"; }
# expect CODE TEXT WHAT COMMAND...: how it ends, and what it says among other things.
expect() {
  local code=0 said
  said=$("${@:4}" 2>&1) || code=$?
  ((code == $1)) && [[ $said == *"$2"* ]] && return
  printf '%s: exit %d, wanted %d and "%s":\n%s\n' "$3" $code "$1" "$2" "$said"
  failed=1
}

play dpkg-query <<< 'for word; do echo "installed $word"; done'
play cmake << 'END'
if [[ $1 == --preset ]]; then mkdir -p "build/$2" && touch "build/$2/build.ninja"; else echo "[1/1] all"; fi
END
play ctest << 'END'
printf 'test 1\n    Start 1: a\n1/1 Test #1: a ....   Passed    0.01 sec\n\n100%% tests passed, 0 tests failed out of 1\n'
END
expect 0 "1 passed, 0 failed" "tests that pass" "$clone/x" test fuzz 1
play ctest <<< "printf 'test 1\n    Start 1: a\n1/2 Test #1: a ....   Passed    0.01 sec\n'; kill -9 \$\$"
expect 1 "ctest_of_fuzz" "a ctest that is killed" "$clone/x" test fuzz 1
play ctest <<< "echo 'No tests were found!!!'; exit 8"
expect 1 "No tests were found!!!" "a ctest without tests" "$clone/x" test fuzz 1

(flock 9; sleep 30 9>&-) 9>> "$clone/build/.lock" &
holder=$!
until ! flock -n "$clone/build/.lock" true; do sleep 0.05; done
expect 2 "another ./x is at work in $clone" "two at once" "$clone/x" test fuzz 1
expect 1 "No tests were found!!!" "one that the tests of the other run" env PHALANX_DOOR="$clone" "$clone/x" test fuzz 1
pkill -P $holder
wait $holder || true

# What was configured for the launcher alone, while packages were installed, is completed.
play cmake << 'END'
echo "cmake $*" >> said
if [[ $1 == --preset ]]; then mkdir -p "build/$2" && touch "build/$2/build.ninja"; else echo "[1/1] all"; fi
END
mkdir -p "$clone/build/train"
touch "$clone/build/train/build.ninja"
printf 'PHALANX_TRAIN:BOOL=OFF\nPHALANX_DEMO:BOOL=OFF\n' > "$clone/build/train/CMakeCache.txt"
expect 0 "" "a build after an interrupted one" "$clone/x" build
grep -qx 'cmake --preset train .*' "$clone/said" || { echo "it was not configured anew"; failed=1; }

if ((EUID == 0)); then
  as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
  chmod -R a+rX "$folder"
  expect 2 "hint: sudo chown -R 65534" "a build folder of somebody else" "${as_nobody[@]}" "$clone/x" build
  mv "$clone/build" aside
  expect 2 "hint: git clone" "a clone of somebody else" "${as_nobody[@]}" "$clone/x" build
  mv aside "$clone/build"
  chown -R 65534:65534 "$clone"
  play install <<< ':'
  expect 127 "installed/bin/phalanx" "root installs what the owner builds" "$clone/x" install "$folder/installed"
  [[ $(stat -c %u "$clone/build/release/build.ninja" "$clone/said") == 65534$'\n'65534 ]] || { echo "it was built as root"; failed=1; }
  foreign=$(find "$clone" ! -user 65534)
  [[ -z $foreign ]] || { echo "files of root in the clone: $foreign"; failed=1; }
  play dpkg-query <<< ':'
  play sudo <<< 'exit 1'
  # The pipe ends when nothing holds it any more.
  SECONDS=0
  expect 2 "libtorch-dev" "packages that only a password installs" bash -c '{ "$@" || exit; } | cat; exit "${PIPESTATUS[0]}"' - \
    "${as_nobody[@]}" "$clone/x" demo
  ((SECONDS < 10)) || { echo "something went on for $SECONDS s behind an error"; failed=1; }
fi
exit $failed
