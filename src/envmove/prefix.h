// The prefix of an environment in the bytes of its files: found only where a path of exactly that name stands, and replaced as the format
// of the file allows. Pure. A prefix is an absolute path without a final slash, "/opt/conda/envs/llm". Rules: conda's
// PrefixReplaceLinkAction and distlib's ScriptMaker; what is stricter than theirs is said here.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "envmove/literals.h"

namespace phalanx::envmove {

// Where `prefix` begins in `data`, at or after `from`. "/envs/llm" is not found in "/envs/llm2", "/envs/llm.old" or "/mnt/envs/llm" (conda
// and conda-pack do not look); it is found in "-L/envs/llm/lib", "file:///envs/llm", "@/envs/llm/x.rsp", "/envs/llm.\n" and behind a "\n"
// that is spelled with a backslash. std::string_view::npos: nowhere.
size_t find_prefix(std::string_view data, std::string_view prefix, size_t from = 0);

inline bool is_within(const std::string& path, const std::string& folder) { return path == folder || path.starts_with(folder + "/"); }

// A move: what is found becomes the new place. Several old ones occur when an environment was moved twice, or its home is a link.
// A hit that already reads as the new place is left alone, so that a second move changes nothing even if one place lies below the other.
struct Move {
  std::vector<std::string> old_prefixes;
  std::string new_prefix;
  bool gone = false;  // nothing is at those old places that lie below the new one

  // Whether a hit of `old` may be the new place, spelled `now`. Not if `old` begins with it as "/env copy" does with "/env", nor if it lay
  // below it, "/llm/env" moved to "/llm", and is gone.
  bool reads_as_new(const std::string& old, const std::string& now) const {
    return !old.starts_with(now) || old.size() == now.size() || (old[now.size()] == '/' && !gone);
  }
};

// Text: any length may change. The first line of a script is not handled here (rewrite_shebang).
struct Replaced {
  std::string data;
  size_t hits = 0;
};
Replaced replace_text(std::string_view data, const Move& move);
// How texts spell a path: as it is; as JSON does what is not ASCII, "/\u7528\u6237/llm"; as a literal within single or double quotes does
// backslashes and its own quotes, "/home/o\'brien/llm"; and as a shell does single quotes within such, "/home/o'\''brien/llm", or Python
// for a shell (shlex.quote), "/home/o'"'"'brien/llm".
enum class Spelling { kPlain, kAscii, kSingleQuoted, kDoubleQuoted, kShell, kShellOfPython };
inline constexpr Spelling kOtherSpellings[] = {Spelling::kAscii, Spelling::kSingleQuoted, Spelling::kDoubleQuoted, Spelling::kShell,
                                               Spelling::kShellOfPython};
std::string spelled(std::string_view path, Spelling spelling);
// Text in which the place may be spelled in any of these ways. Within a literal the new place is spelled as the literal has to.
Replaced replace_spellings(std::string_view data, const Move& move, Code code);

// Programs and libraries: a path is (a part of) a string that ends with a NUL, in UTF-8, UTF-16 or UTF-32. The length of the file stays.
// placeholder_length, of a file that its package prepared for being moved (conda's): what is shorter is filled with NULs at the end of the
// string, what is longer takes the NULs that an installer has left there, per occurrence as many as the placeholder is longer than the old
// prefix; 0: nobody knows how many. nullopt, any other file: strings need not end with a NUL (those of Rust and Go have a length, and stand
// side by side), so nothing behind a path may shift. It is filled with slashes, "/new////lib", and may grow into such; only a string that
// is the prefix and nothing else is filled with NULs.
struct BinaryReplaced {
  std::string data;
  size_t hits = 0;
  std::vector<std::string> too_long;  // the strings for which there is no room; data is then of no use
};
BinaryReplaced replace_binary(std::string_view data, const Move& move, std::optional<size_t> placeholder_length);

// The first line of a script, "#!/old/bin/python3.11 -E", or the two lines that pip and conda write where it would be too long or has a
// blank: "#!/bin/sh" and "'''exec' "/old/bin/python" "$0" "$@"". Returns the script with the new interpreter, in the short form where the
// kernel can read it: kLongestShebang bytes, no blank.
inline constexpr size_t kLongestShebang = 127;  // Linux before 5.1 cuts the line there (fs/binfmt_script.c, BINPRM_BUF_SIZE)
struct Shebang {
  std::string interpreter;  // absolute
  std::string arguments;    // behind it, with the blank
  size_t end = 0;           // bytes of the script that these lines take, the last end of line included
  bool by_shell = false;    // the two lines
};
std::optional<Shebang> read_shebang(std::string_view script);
// nullopt: neither form can start it: no Python, or a docstring before "from __future__", which must come first.
std::optional<std::string> write_shebang(const Shebang& shebang, std::string_view interpreter, std::string_view rest);

// A script that activates a venv, for sh, csh or fish: VIRTUAL_ENV as each of them sets it. A value without quotes, or in single ones, is
// written as a word of the shell, so that a blank in the new place does no harm; in double quotes it stays where that is enough.
Replaced replace_activation(std::string_view script, const Move& move);
// The place that such a line sets, if it sets one and says it without expanding anything.
std::optional<std::string> activation_place(std::string_view line);
// "/old/lib/x" becomes "/new/lib/x"; any other path stays.
std::string moved_path(const std::string& path, const Move& move);

}  // namespace phalanx::envmove
