#!/usr/bin/env bash
# cmake/unity_groups.awk and tools/count_tests.awk. Usage: awk_test.sh PROJECT
set -euo pipefail
project=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
failed=0
expect() {  # WHAT WANTED GOT
  [[ $2 == "$3" ]] || { printf '%s\n  wanted: %s\n  got:    %s\n' "$1" "$2" "$3"; failed=1; }
}
groups() { awk -v most="${most:-100000}" -f "$project/cmake/unity_groups.awk" "$@" | tr '\n' ' '; }

printf 'namespace a {\nnamespace {\n\nbool is_address(std::string_view name) {\n}\n\n}  // namespace\n}  // namespace a\n' > bus.cc
printf 'namespace a {\nbool f() { return is_address(name); }\n}  // namespace a\n' > names.cc
printf 'namespace a {\nbool g() { return x.is_address(1) || b::is_address(2) || h("is_address(3)"); }\n// is_address(4)\n}\n' > other.cc
printf 'namespace a {\nbool k() { return get("http://x") && is_address(3); }\n}  // namespace a\n' > text.cc
printf 'namespace a {\nnamespace {\n\nint is_address(int i) {\n}\n\n}  // namespace\n}  // namespace a\n' > twice.cc
expect "a source that calls what another declares unnamed is not behind it" "1 bus.cc 2 names.cc " "$(groups bus.cc names.cc)"
expect "before it, it may be" "1 names.cc 1 bus.cc " "$(groups names.cc bus.cc)"
expect "a member, a qualified name and a comment are no such call" "1 bus.cc 1 other.cc " "$(groups bus.cc other.cc)"
expect "a text is no comment" "1 bus.cc 2 text.cc " "$(groups bus.cc text.cc)"
expect "two that declare the same unnamed name are apart" "1 bus.cc 2 twice.cc " "$(groups bus.cc twice.cc)"
printf 'namespace a {\nnamespace {\n\nusing Place = std::optional<b::Text>;\n\n}  // namespace\n}  // namespace a\n' > alias.cc
printf 'namespace a {\nnamespace {\n\nstruct Place {\n};\n\n}  // namespace\n}  // namespace a\n' > place.cc
expect "a type's other name is a name too" "1 alias.cc 2 place.cc " "$(groups alias.cc place.cc)"
expect "a group has so many bytes and no more" "1 names.cc 2 other.cc " "$(most=100 groups names.cc other.cc)"

cat > one.log <<'END'
1: [ RUN      ] A.Fails
1: a.cc:3: Failure
1: Value of: x
1:   Actual: false
1: [  FAILED  ] A.Fails (3 ms)
1: [ RUN      ] A.Passes
1: [       OK ] A.Passes (1 ms)
1/2 Test #1: unit/a ....***Failed  0.1 sec
2: only this
2/2 Test #2: other/b .....***Failed 0.0 sec
END
counted=$(awk -f "$project/tools/count_tests.awk" one.log) && { echo "a failure is no failure"; failed=1; }
expect "the end of a count" "== failed

unit/a: Failed  0.1 sec
    a.cc:3: Failure
    Value of: x
      Actual: false
    [  FAILED  ] A.Fails (3 ms)

other/b: Failed 0.0 sec
    only this

1 passed, 2 failed, 0 skipped" "$(sed -n '/^== failed$/,$p' <<< "$counted")"

printf 'test 1\n    Start 1: a\n\n1/3 Test #1: a ....   Passed    0.02 sec\ntest 2\n    Start  2: b/c\n\n2: it says\n' > one.log
counted=$(awk -f "$project/tools/count_tests.awk" one.log) && { echo "a test without an end has passed"; failed=1; }
expect "a test without an end" "== failed

b/c: began and did not end

1 passed, 1 failed, 0 skipped" "$(sed -n '/^== failed$/,$p' <<< "$counted")"
exit $failed
