#include "hosts/connect/deploy.h"

#include <fmt/format.h>

#include "base/text.h"
#include "os/files.h"
#include "wire/frame.h"

namespace phalanx::hosts {
namespace {

constexpr size_t kMaxFolderShown = 300;
constexpr size_t kMaxRefusalShown = kMaxFolderShown + 200;
constexpr size_t kMostTalk = 8;  // the script has five places

// The script runs programs out of folders, so it must never run one out of a folder that another user can change. Looking at a folder by
// name and then using it by name leaves a window: who owns the name can exchange what is behind it in between. The script therefore
// first enters a folder (cd -P), which fixes it for good, and then looks at `.` and uses only names below `.`:
//   - k: the folder we are in is ours, and neither group nor others can write to it (an ACL shows in the bits of the group). Only we can
//     change what is in it from then on.
//   - r: the quick look at our own two places, with builtins only, because a fork costs more than all else here. The builtins cannot see
//     the mode. They can see the sticky bit, which this script gives to its folders (1700) after it checked them: in a sticky folder of
//     ours, others cannot replace what is ours even if the folder is made writable for them later.
//   - The loop looks closely. Own places come first; the shared ones (/var/tmp, /tmp, /dev/shm) are looked at only after they failed, and
//     are made by plain mkdir, never -p. `pwd -P` names what was entered, so a link to another folder of ours shows. The folder of the
//     build is made inside. If it was writable for others, its program is removed and asked for again. PHALANX_CACHE is a folder of the
//     user's choice: its mode is checked, never changed.
//
// To install, the script asks for the bytes, verifies, renames, runs. When the connection ends, the unfinished copy goes too (q). It is
// created with O_EXCL (set -C). The agent runs with the login's own umask, and returns to the home directory by itself. No '!': csh
// expands it even inside single quotes. `|| cat >/dev/null`: on a full disk, or when gzip gives up, the rest of the bytes must still be
// taken off the stream.
//
// The unfinished copy's name holds a tag that the launcher drew for this connection: hosts may share the folder, and their process
// ids may be equal. A host that finds the program there once its own copy is verified keeps the one that is there: on NFS,
// replacing it would take the file from under hosts that already run it.
//
// What gzip accepted (it checks length and CRC) is sound enough to be asked for its own SHA-256: it has the processor's
// instructions for that, and needs a fifth of the time of sha256sum. Whatever it cannot vouch for, sha256sum judges.
constexpr std::string_view kScript =
    "b=@BUILD@; unset CDPATH; "
    "x() { if [ -f phalanx ] && [ -x phalanx ] && [ -O phalanx ]; then @RUN@; fi; }; "
    "r() { if [ -x \"$1/$b/phalanx\" ] && cd -P \"$1/$b\" 2>/dev/null; then "
    "if [ -O . ] && [ -k . ] && [ -O .. ] && [ -k .. ]; then x; fi; cd /; fi; }; "
    "k() { if [ -O . ]; then case $(ls -ld . 2>/dev/null) in d???"
    "?-?"
    "?-*) return 0 ;; esac; fi; return 1; }; "
    "e=${PHALANX_CACHE:-/nonexistent}; e=${e%/}; c=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/phalanx; r \"$e\"; r \"$c\"; "
    "u=$(id -u); set -- \"$e\" \"$c\" \"/var/tmp/phalanx-$u\" \"/tmp/phalanx-$u\" \"/dev/shm/phalanx-$u\"; "
    "t=; q() { rm -f \"$t\"; exit 1; }; trap q HUP INT PIPE TERM; "
    "z=raw; if command -v gzip >/dev/null 2>&1; then z=gzip; fi; "
    "v() { cd /; "
    "case $d in \"$e\" | \"$c\") ( umask 077; mkdir -p \"$d\" ) ;; *) mkdir -m 700 \"$d\" ;; esac 2>/dev/null; "
    "cd -P \"${d%/*}/\" 2>/dev/null || return 1; p=$(pwd -P); "
    "cd -P \"./${d##*/}\" 2>/dev/null && [ \"$(pwd -P)\" = \"${p%/}/${d##*/}\" ] && [ -O . ] || return 1; "
    "if [ \"$d\" = \"$e\" ]; then : ; else chmod 1700 . 2>/dev/null; fi; k || return 1; "
    "mkdir -m 700 \"$b\" 2>/dev/null; if [ -h \"$b\" ]; then return 1; fi; "
    "cd -P \"./$b\" 2>/dev/null && [ -O . ] || return 1; "
    "if k; then chmod 1700 . 2>/dev/null; else chmod 1700 . 2>/dev/null; rm -f phalanx; k; fi; }; "
    "for d do "
    "case $d in /nonexistent*) continue ;; esac; "
    "if v; then : ; else echo \"PHALANX-BAD $d cannot be made, is a link, is not ours, or others can write to it\"; continue; fi; x; "
    "t=.new.@TAG@.$$; "
    "if ( umask 077; set -C; : >\"$t\" ) 2>/dev/null && chmod 700 \"$t\" && [ -x \"$t\" ]; then : ; else rm -f \"$t\"; t=; "
    "echo \"PHALANX-BAD $d cannot hold programs (read-only, full, or mounted noexec)\"; continue; fi; "
    "echo \"PHALANX-NEED $z $d\"; read -r h s w n || q; g=0; "
    "if [ \"$w\" = gzip ]; then z=raw; "
    "if head -c \"$n\" | ( gzip -dc >\"$t\" 2>/dev/null || { cat >/dev/null; exit 1; } ) && \"./$t\" selfcheck \"$h\" 2>/dev/null; then "
    "g=1; fi; "
    "else head -c \"$n\" | ( cat >\"$t\" 2>/dev/null || cat >/dev/null ); fi; "
    "if [ $g = 1 ]; then : ; elif command -v sha256sum >/dev/null 2>&1; then "
    "g=$(sha256sum <\"$t\"); if [ \"${g%% *}\" = \"$h\" ]; then g=1; else g=0; fi; "
    "elif [ \"$(wc -c <\"$t\")\" -eq \"$s\" ] && \"./$t\" selfcheck \"$h\"; then g=1; fi; "
    "if [ $g = 1 ]; then if [ -x phalanx ] && [ -O phalanx ]; then rm -f \"$t\"; else mv -f \"$t\" phalanx; fi && x; fi; "
    "rm -f \"$t\"; t=; echo \"PHALANX-BAD $d the copy was not whole (is the disk or quota full?)\"; "
    "done; echo PHALANX-NOPLACE; exit 97";

}  // namespace

std::string deploy_script(const std::string& build, const std::string& tag, const std::string& run) {
  return base::replace_all(base::replace_all(base::replace_all(kScript, "@BUILD@", build), "@TAG@", tag), "@RUN@", run);
}

std::string fresh_tag() { return os::random_suffix(); }

// The quick look (r above) in words that every login shell knows: no '!', no redirection, no process but csh's test. What makes it safe
// without a look at the mode: both folders are entered before they are looked at, are ours, and carry the sticky bit that only the script
// sets, so that nobody else can have replaced the program in them. `test -x` comes first so that cd has nothing to complain of. The script
// is started from the home directory again, because a look that failed may have entered the folder.
std::string remote_command(const std::string& build, const std::string& tag) {
  return fmt::format(
      "test -x ~/.cache/phalanx/{0}/phalanx && cd ~/.cache/phalanx/{0} && "
      "test -O . -a -k . -a -O .. -a -k .. -a -x phalanx -a -O phalanx && exec ./phalanx agent; cd; exec sh -c '{1}'",
      build, deploy_script(build, tag));
}

base::Result<DeployTalk::Ask> DeployTalk::feed(std::string_view bytes, std::string& rest) {
  if (stream_) {
    rest.append(bytes);
    return Ask::kNothing;
  }
  line_.append(bytes);
  for (;;) {
    size_t magic = line_.find(wire::kStreamMagic[0]);
    size_t end = line_.find('\n');
    if (magic != std::string::npos && (end == std::string::npos || magic < end)) {
      stream_ = true;
      rest.append(line_);
      line_.clear();
      return Ask::kNothing;
    }
    if (end == std::string::npos) break;
    // Login noise without an end of line stands before our marker on the same line.
    std::string text = line_.substr(0, end);
    line_.erase(0, end + 1);
    size_t mark = text.find("PHALANX-");
    if (mark != std::string::npos && mark > 0) {
      rest.append(text, 0, mark).append("\n");
      text.erase(0, mark);
    }
    const bool need = text.starts_with("PHALANX-NEED "), bad = text.starts_with("PHALANX-BAD ");
    if ((need && ++needs_ > kMostTalk) || (bad && refusals_.size() == kMostTalk))
      return base::fail(base::ErrorKind::kInternal, "what answers there asks for the program again and again");
    if (need) {
      size_t word = text.find(' ', 13);
      folder_ = word == std::string::npos ? "" : text.substr(word + 1, kMaxFolderShown);
      // The far side says nothing more until it has the bytes.
      return text.starts_with("PHALANX-NEED gzip ") ? Ask::kGzip : Ask::kRaw;
    }
    if (bad) refusals_.push_back(text.substr(12, kMaxRefusalShown));
    else if (text == "PHALANX-NOPLACE") no_place_ = true;
    else rest.append(text + "\n");
  }
  if (line_.size() > wire::kMaxNoiseBytes) {
    rest.append(line_);
    line_.clear();
  }
  return Ask::kNothing;
}

}  // namespace phalanx::hosts
