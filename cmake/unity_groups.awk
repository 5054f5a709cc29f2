# awk -v most=BYTES -f unity_groups.awk SOURCE...: which sources are compiled together. Prints "GROUP SOURCE" lines.
#
# Most of a source's compile time goes into the headers and templates it shares with its neighbours, so that compiling ten of them as
# one translation unit costs little more than compiling two. But what a source declares in an unnamed namespace then meets what the
# others declare there. So two sources share a group only if no such name is declared in both, and a source never comes after one that
# declares in an unnamed namespace a name it calls: an is_address(std::string_view) there once hid the one of a header, and the wrong
# function was called. A source joins the first group with room, which keeps neighbours together. What this does not see (a function
# passed by its name) is a compile error at best; renaming is the remedy.

# Notes the names that a line at the start of a declaration declares. The sources are clang-formatted: what stands in a namespace is
# not indented. Two sources may share a `using` declaration, if it names the same thing.
function note(line, kind, list, count, i) {
  if (line ~ /^(using namespace|namespace|extern|#|\/\/|[ })]|[A-Z_]+\()/ || line == "") return  # the last: TEST(…)
  if (line ~ /^using /) {
    kind = line
    sub(/ = .*/, "", line)  # using Name = type;
    sub(/^using (.*::)?/, "", line)
    sub(/[ ;].*/, "", line)
    names[line] = kind
  } else if (match(line, /^(template <[^(]*> )?(struct|class|enum|enum class|union) [A-Za-z_0-9]+( final)?( :| \{|;)/)) {
    line = substr(line, RSTART, RLENGTH)
    sub(/( final)?( :| \{|;)$/, "", line)
    note_last(line)
  } else if (line ~ /^(constexpr|const) [^(]*=/) {
    count = split(line, list, /, /)  # constexpr int kOne = 1, kTwo = 2;
    for (i = 1; i <= count; ++i) {
      sub(/ *(\[[^=]*)?[={].*/, "", list[i])
      note_last(list[i])
    }
  } else {
    sub(/ *(\[[^=]*)?[={;].*/, "", line)
    if (match(line, /[A-Za-z_0-9]+\(/)) line = substr(line, 1, RSTART + RLENGTH - 2)
    note_last(line)
  }
}

function note_last(text) {
  if (match(text, /[A-Za-z_0-9]+$/)) names[substr(text, RSTART)] = source
}

# Notes the names that a line calls as functions of its own namespaces: name(, but not x.name( or y::name(.
function note_calls(line, before) {
  gsub(/"([^"\\]|\\.)*"/, "", line)
  sub(/\/\/.*/, "", line)
  while (match(line, /[A-Za-z_][A-Za-z_0-9]*\(/)) {
    before = RSTART > 1 ? substr(line, RSTART - 1, 1) : " "
    if (before !~ /[.>:A-Za-z_0-9]/) calls[substr(line, RSTART, RLENGTH - 1)]
    line = substr(line, RSTART + RLENGTH)
  }
}

function place(group, name, fits) {
  for (group = 1; group <= groups; ++group) {
    fits = size[group] + bytes <= most
    for (name in names) fits = fits && (!((group, name) in taken) || taken[group, name] == names[name])
    for (name in calls) fits = fits && (!((group, name) in taken) || taken[group, name] ~ /^using /)
    if (fits) break
  }
  if (group > groups) groups = group
  size[group] += bytes
  for (name in names) taken[group, name] = names[name]
  print group, source
}

FNR == 1 && source != "" { place() }
FNR == 1 { source = FILENAME; split("", names); split("", calls); bytes = 0; unnamed = 0 }
{ bytes += length($0); note_calls($0) }
/^namespace \{$/ { unnamed = 1; next }
/^}  \/\/ namespace$/ { unnamed = 0 }
unnamed || /^(static|using) / { note($0) }
END { if (source != "") place() }
