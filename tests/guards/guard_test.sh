#!/usr/bin/env bash
# guard_test.sh: each guard fails when a limit is passed, says what grew, and passes when it is not.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
folder=$(mktemp -d "${TMPDIR:-/tmp}/phalanx-guard-XXXXXX")
trap 'rm -rf "$folder"' EXIT
build=$folder/build
mkdir "$build"
head -c 1000 /dev/zero > "$build/phalanx"
printf '# ninja log v5\n0\t1000\t0\ta.cc.o\t1\n0\t1000\t0\tb.cc.o\t2\n1000\t9000\t0\tdir/CMakeFiles/x.dir/c.cc.o\t3\n' > "$build/.ninja_log"
export PHALANX_FULL_BUILD=1 PHALANX_TEST_STARTED=$(($(date +%s) - 100))

# expect CODE TEXT WHAT NAME LIMIT: the guard WHAT, with this limit for NAME.
expect() {
  printf '%s\t%s\tunits\tof the test\n' "$4" "$5" > "$folder/limits"
  local code=0 said
  said=$("$here/guard.sh" "$3" "$build" "$folder/limits") || code=$?
  if ((code != $1)) || [[ $said != *"$2"* ]]; then
    printf 'guard %s with the limit %s: exit %d, wanted %d and "%s":\n%s\n' "$3" "$5" "$code" "$1" "$2" "$said"
    exit 1
  fi
}
expect 0 "GUARD: size of the launcher: 1000" size binary_size 1000
expect 1 "size of the launcher has grown to 1000, over its limit of 999" size binary_size 999
expect 0 "GUARD: compiled in 8.0 s: dir/x/c.cc" compile slowest_file 3
expect 1 "slowest file to compile against the mean has grown to 2.4" compile slowest_file 2
expect 0 "GUARD: ./x test has taken 10" duration test_duration 100000
expect 1 "raise test_duration in tests/guards/limits.tsv" duration test_duration 1
expect 1 "has no limit for binary_size" size other 1
mv "$build/.ninja_log" "$build/kept"
printf '# ninja log v5\n' > "$build/.ninja_log"
expect 1 "was not measured" compile slowest_file 3
mv "$build/kept" "$build/.ninja_log"
unset PHALANX_FULL_BUILD
expect 77 "SKIP: not a full build" compile slowest_file 1
echo "the guards hold and fail"
