# Adds up `ctest -V` logs: a GoogleTest program counts with each of its cases, any other test as one. Prints the output of what failed,
# the ten slowest, what the guards measured, what was skipped and why, how many were skipped for each reason, the words of each failure
# once more and shortened (whoever is sent only the end of a log needs them), and last "N passed, N failed, N skipped". Exit 1 on a
# failure, or if nothing ran.
#
# NAME.again.log holds a second run of what failed in NAME.log, and is read before it. A test that passed there counts as passed and as
# unsteady; what it said at first is told.
#
# In such a log a test begins with "Start 12: name", its output is "12: text", and its outcome
# "3/9 Test #12: name ....   Passed    0.01 sec". One that has begun and has no outcome failed.
# A test that is not GoogleTest says why it skips in a line "SKIP: why" before it exits 77. A guard says what it found in lines
# "GUARD: what".

# A case or test that was skipped; said again, by reason, beside the count: what was not tested must not drown in a list.
function skip(name, reason) {
  if (reason == "") reason = "no reason given"
  skips = skips "  " name ": " reason "\n"
  if (!(reason in skipped_for)) reasons[++different] = reason
  skipped_for[reason]++
}

function forget() {
  delete cases_ok; delete cases_failed; delete cases_skipped
  delete text; delete before_case; delete why; delete reason_of; delete after_skipped
}

# The output of a test, without the GoogleTest cases in it that passed: what failed must not drown in them.
function keep(number, line) {
  if (line ~ /^\[ RUN      \]/) { before_case[number] = text[number] }
  if (line ~ /^\[       OK \]/) { text[number] = before_case[number] }
  else if (line !~ /^\[-----/ && length(text[number]) < 200000) text[number] = text[number] "    " line "\n"
}

# Of the output of a test that failed: each failed assertion with up to 14 lines of what it says, at most 40 lines in all; where none is
# marked as GoogleTest marks them, the last 14.
function digest(output, lines, count, i, left, said, chosen) {
  count = split(output, lines, "\n") - 1
  for (i = 1; i <= count && chosen < 40; ++i) {
    if (lines[i] ~ /: Failure$/) left = 15
    if (lines[i] ~ /\[  FAILED  \]/) left = 1
    if (left > 0) { said = said substr(lines[i], 1, 500) "\n"; chosen++; left-- }
  }
  for (i = said == "" ? (count > 14 ? count - 13 : 1) : count + 1; i <= count; ++i) said = said substr(lines[i], 1, 500) "\n"
  return said
}

# Keeps the ten slowest, the slowest first.
function took(seconds, name, i) {
  for (i = slow < 10 ? ++slow : 11; i > 1 && slow_seconds[i - 1] < seconds; --i) {
    slow_seconds[i] = slow_seconds[i - 1]
    slow_name[i] = slow_name[i - 1]
  }
  slow_seconds[i] = seconds
  slow_name[i] = name
}

# Of "[       OK ] Suite.Case (12 ms)".
function took_case(line) {
  if (!match(line, /\([0-9]+ ms\)/)) return
  took(substr(line, RSTART + 1, RLENGTH - 5) / 1000, substr(line, 14, RSTART - 15))
}

FNR == 1 {
  forget()
  run = FILENAME
  second_run = sub(/\.again\.log$/, ".log", run)
}

second_run {
  if (match($0, /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: /) && / Passed /) {
    number = substr($0, 1, RLENGTH - 2)
    sub(/.*#/, "", number)
    passed_again[run, number] = 1
  }
  next
}

!second_run && /^ *Start +[0-9]+: / {
  number = $2
  sub(/:/, "", number)
  begun[run, number] = $3
  next
}

match($0, /^[0-9]+: /) {
  number = substr($0, 1, RLENGTH - 2)
  line = substr($0, RLENGTH + 1)
  keep(number, line)
  if (line ~ /^\[       OK \]/) { cases_ok[number]++; took_case(line) }
  else if (line ~ /^\[  FAILED  \] .*\([0-9]+ ms\)/) cases_failed[number]++
  else if (line ~ /^\[  SKIPPED \] .*\([0-9]+ ms\)/) {
    cases_skipped[number]++
    name = line
    sub(/^\[  SKIPPED \] /, "", name)
    sub(/ \([0-9]+ ms\)$/, "", name)
    skip(name, reason_of[number])
    reason_of[number] = ""
  } else if (line ~ /^\[ RUN      \]/) reason_of[number] = ""
  else if (line ~ /^SKIP: /) why[number] = substr(line, 7)
  else if (line ~ /^GUARD: /) guards = guards "  " substr(line, 8) "\n"
  else if (after_skipped[number]) { reason_of[number] = line; after_skipped[number] = 0 }
  if (line ~ /: Skipped$/) after_skipped[number] = 1
  next
}

match($0, /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: /) {
  number = substr($0, 1, RLENGTH - 2)
  sub(/.*#/, "", number)
  name = substr($0, RLENGTH + 1)
  sub(/[ .].*/, "", name)
  delete begun[run, number]
  counted_as_cases = cases_ok[number] + cases_failed[number] + cases_skipped[number] > 0
  failures_of = cases_failed[number] + 0
  if (((run, number) in passed_again) && $0 !~ / Passed |\*\*\*Skipped/) {
    if (!failures_of) failures_of = 1
    unsteady += failures_of
    passed += cases_ok[number] + failures_of
    skipped += cases_skipped[number]
    said_at_first = said_at_first "\n" name ": passed at the second try; at the first:\n" text[number]
    next
  }
  passed += cases_ok[number]
  failed += failures_of
  skipped += cases_skipped[number]
  if ($0 ~ /\*\*\*Skipped/) {
    if (!counted_as_cases) { skipped++; skip(name, why[number]) }
  } else if ($0 ~ / Passed /) {
    if (!counted_as_cases) { passed++; took($(NF - 1), name) }
  } else {
    if (!failures_of) failed++
    outcome = $0
    sub(/.*\*\*\*/, "", outcome)
    failures = failures "\n" name ": " outcome "\n" text[number]
    digests = digests "\n" name ": " outcome "\n" digest(text[number])
  }
  next
}

END {
  for (key in begun) {
    failed++
    digests = digests "\n" begun[key] ": began and did not end\n"
  }
  if (said_at_first != "") printf "\n== unsteady\n%s", said_at_first
  if (failures != "") printf "\n== failures\n%s", failures
  if (slow > 0) printf "\n== slowest\n"
  for (i = 1; i <= slow && i <= 10; ++i) printf "%7.1f s  %s\n", slow_seconds[i], slow_name[i]
  if (guards != "") printf "\n== guards\n%s", guards
  if (skips != "") printf "\n== skipped\n%s\n", skips
  for (i = 1; i <= different; ++i) printf "NOT TESTED: %d skipped: %s\n", skipped_for[reasons[i]], reasons[i]
  if (digests != "") printf "\n== failed\n%s", digests
  printf "\n%d passed, %d failed, %d skipped", passed, failed, skipped
  if (unsteady) printf "; %d of the passed only at the second try", unsteady
  printf "\n"
  exit (failed > 0 || passed == 0)
}
