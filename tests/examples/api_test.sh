#!/usr/bin/env bash
# api_test.sh DOXYFILE: the reference of the engine's headers can be made, has a page for every installed header, and the comments of the
# headers are in it.
set -euo pipefail
command -v doxygen > /dev/null || { echo "SKIP: needs doxygen"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAIL: %s\n' "$*"; exit 1; }

{ cat "$1"; echo "OUTPUT_DIRECTORY = $work"; } | doxygen - > "$work/log" 2>&1 || { cat "$work/log"; fail "doxygen"; }
headers=$(sed -n 's/^INPUT *= [^ ]* //p' "$1")
count=0
for header in $headers; do
  grep -qF "$(basename "$header")" "$work/html/files.html" || fail "no page for $header"
  count=$((count + 1))
done
((count > 30)) || fail "only $count headers"
page=$work/html/classphalanx_1_1engine_1_1parallel_1_1DataParallel.html
grep -q 'reduction of gradients over the ranks' "$page" || fail "the comment before backward() is missing"
grep -q 'forgets the gradients without a step' "$page" || fail "the comment behind clear() is missing"
echo "PASS: $count headers"
