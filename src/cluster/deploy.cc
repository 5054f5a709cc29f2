#include "cluster/deploy.h"

#include <fmt/format.h>

#include "base/text.h"
#include "wire/frame.h"

namespace cluster {
namespace {

// Read top to bottom: run the cached binary if it can be run (r), and ask no other program for that in the two usual places: a
// fork costs more than all else here. Else for each folder that is ours (not a link, owned by us) and can hold a program (test -x
// fails on noexec), ask for the bytes, verify, rename, run. When the connection ends, the unfinished copy goes too (q). The agent
// runs with the login's own umask. No '!': csh expands it even inside single quotes. `|| cat >/dev/null`: on a full disk, or when
// gzip gives up, the rest of the bytes must still be taken off the stream.
//
// The unfinished copy's name holds a tag that the launcher drew for this connection: hosts may share the folder, and their process
// ids may be equal. A host that finds the program there once its own copy is verified keeps the one that is there: on NFS,
// replacing it would take the file from under hosts that already run it.
//
// What gzip accepted (it checks length and CRC) is sound enough to be asked for its own SHA-256: it has the processor's
// instructions for that, and needs a fifth of the time of sha256sum. Whatever it cannot vouch for, sha256sum judges.
constexpr std::string_view kScript =
    "b=@BUILD@; r() { if [ -x \"$1/$b/phalanx\" ] && [ -O \"$1/$b/phalanx\" ]; then exec \"$1/$b/phalanx\" agent; fi; }; "
    "e=${PHALANX_CACHE:-/nonexistent}; c=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/phalanx; r \"$e\"; r \"$c\"; "
    "u=$(id -u); set -- \"$e\" \"$c\" \"/var/tmp/phalanx-$u\" \"/tmp/phalanx-$u\" \"/dev/shm/phalanx-$u\"; for d do r \"$d\"; done; "
    "t=; q() { rm -f \"$t\"; exit 1; }; trap q HUP INT PIPE TERM; "
    "k=raw; if command -v gzip >/dev/null 2>&1; then k=gzip; fi; "
    "for d do "
    "if [ \"$d\" = /nonexistent ]; then continue; fi; "
    "( umask 077; mkdir -p \"$d/$b\" ) 2>/dev/null; "
    "if [ -h \"$d\" ]; then o=0; elif [ -O \"$d/$b\" ]; then o=1; else o=0; fi; "
    "if [ $o = 0 ]; then echo \"PHALANX-BAD $d cannot be made, or is not ours\"; continue; fi; "
    "t=$d/$b/.new.@TAG@.$$; "
    "if ( umask 077; : >\"$t\" ) 2>/dev/null && chmod 700 \"$t\" && [ -x \"$t\" ]; then : ; else rm -f \"$t\"; "
    "echo \"PHALANX-BAD $d cannot hold programs (read-only, full, or mounted noexec)\"; continue; fi; "
    "echo \"PHALANX-NEED $k $d\"; read -r h s w n || q; g=0; "
    "if [ \"$w\" = gzip ]; then k=raw; "
    "if head -c \"$n\" | ( gzip -dc >\"$t\" 2>/dev/null || { cat >/dev/null; exit 1; } ) && \"$t\" selfcheck \"$h\" 2>/dev/null; then g=1; "
    "fi; "
    "else head -c \"$n\" | ( cat >\"$t\" 2>/dev/null || cat >/dev/null ); fi; "
    "if [ $g = 1 ]; then : ; elif command -v sha256sum >/dev/null 2>&1; then "
    "g=$(sha256sum <\"$t\"); if [ \"${g%% *}\" = \"$h\" ]; then g=1; else g=0; fi; "
    "elif [ \"$(wc -c <\"$t\")\" -eq \"$s\" ] && \"$t\" selfcheck \"$h\"; then g=1; fi; "
    "if [ $g = 1 ]; then if [ -x \"$d/$b/phalanx\" ] && [ -O \"$d/$b/phalanx\" ]; then rm -f \"$t\"; else mv -f \"$t\" \"$d/$b/phalanx\"; "
    "fi && r \"$d\"; fi; "
    "rm -f \"$t\"; echo \"PHALANX-BAD $d the copy was not whole (is the disk or quota full?)\"; "
    "done; echo PHALANX-NOPLACE; exit 97";

}  // namespace

std::string deploy_script(const std::string& build, const std::string& tag) {
  return base::replace_all(base::replace_all(kScript, "@BUILD@", build), "@TAG@", tag);
}

std::string remote_command(const std::string& build, const std::string& tag) {
  std::string program = fmt::format("~/.cache/phalanx/{}/phalanx", build);
  return fmt::format("test -x {0} -a -O {0} && exec {0} agent; exec sh -c '{1}'", program, deploy_script(build, tag));
}

DeployTalk::Ask DeployTalk::feed(std::string_view bytes, std::string& rest) {
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
    if (text.rfind("PHALANX-NEED ", 0) == 0) {
      uploaded_ = true;
      // The far side says nothing more until it has the bytes.
      return text.rfind("PHALANX-NEED gzip ", 0) == 0 ? Ask::kGzip : Ask::kRaw;
    }
    if (text.rfind("PHALANX-BAD ", 0) == 0) refusals_.push_back(text.substr(12));
    else if (text == "PHALANX-NOPLACE") no_place_ = true;
    else rest.append(text + "\n");
  }
  if (line_.size() > wire::kMaxNoiseBytes) {
    rest.append(line_);
    line_.clear();
  }
  return Ask::kNothing;
}

}  // namespace cluster
