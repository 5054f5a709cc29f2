// Self-deployment: the launcher sends itself to a host that lacks this exact build, over the connection it already has.
//
// The remote command is one line of POSIX sh without user data (nothing to quote). It runs the cached binary if it is
// there; else it asks, on stdout, one line at a time:
//   far side: PHALANX-NEED <gzip or raw> <folder>   near side: "<sha256> <size> <gzip or raw> <length>\n" and <length> bytes
//   far side: PHALANX-BAD <folder> <why>            (and goes on with the next folder)
//   far side: PHALANX-NOPLACE                       (all folders failed; exits 97)
// SHA-256 and size are those of the unpacked program. gzip is asked for once: if that copy was not whole, the next folder asks for raw.
// After that, or at once, the agent's stream begins (wire/frame.h). Lines that are none of these are login noise.
// In the cache: <folder>/<build id>/phalanx, written as .new.<tag>.<pid>, verified, then renamed: any number of launches may race,
// and any number of hosts may share the folder. Both folders are ours, 1700, and no links; nothing is run out of one that others can write
// to. The agent starts in the folder of its program, which it leaves by itself (agent/guard.cc).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace phalanx::hosts {

// Hosts may share the folder that the program is copied to, so no other connection to any host has this tag.
std::string fresh_tag();

// run: what starts the agent of the folder that the script is in, when that is whole.
// The sh program, free of single quotes, backslashes and '!', so that sh, bash, zsh, csh, tcsh and fish all pass it on unchanged
// inside single quotes. build: hex. tag: letters and digits that no other connection has.
std::string deploy_script(const std::string& build, const std::string& tag, const std::string& run = "exec ./phalanx agent");

// The whole command for ssh: words that every shell understands, which run the program at once where it usually lies, so that on all but
// the first run no second shell is started; else `exec sh` with the script.
std::string remote_command(const std::string& build, const std::string& tag);

// The near side of the conversation. Pure: feed() takes what came in and says what to do.
class DeployTalk {
 public:
  // What to send before more input is fed: nothing, or the binary, compressed or as it is.
  enum class Ask { kNothing, kGzip, kRaw };
  // Consumes whole marker lines; `rest` gets everything that belongs to the stream reader (noise included). Error (kInternal): the far
  // side asks or refuses more often than the script, which has five places, ever does.
  base::Result<Ask> feed(std::string_view bytes, std::string& rest);
  const std::vector<std::string>& refusals() const { return refusals_; }  // "<folder>: <why>"
  bool no_place() const { return no_place_; }
  const std::string& folder() const { return folder_; }  // that the far side named last in PHALANX-NEED
  bool uploaded() const { return needs_ > 0; }

 private:
  std::string line_;
  std::vector<std::string> refusals_;
  std::string folder_;
  size_t needs_ = 0;
  bool stream_ = false;
  bool no_place_ = false;
};

}  // namespace phalanx::hosts
