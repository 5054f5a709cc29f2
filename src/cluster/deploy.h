// Self-deployment: the launcher sends itself to a host that lacks this exact build, over the connection it already has.
//
// The remote command is one line of POSIX sh without user data (nothing to quote). It runs the cached binary if it is
// there; else it asks, on stdout, one line at a time:
//   far side: PHALANX-NEED <folder>        near side: "<sha256> <size>\n" and the bytes
//   far side: PHALANX-BAD <folder> <why>   (and goes on with the next folder)
//   far side: PHALANX-NOPLACE              (all folders failed; exits 97)
// After that, or at once, the agent's stream begins (wire/frame.h). Lines that are none of these are login noise.
// In the cache: <folder>/<build id>/phalanx, written as .new.<pid>, verified, then renamed: ten launches may race.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cluster {

// The sh program, free of single quotes, backslashes and '!', so that sh, bash, zsh, csh, tcsh and fish all pass it on unchanged
// inside single quotes. build: hex.
std::string deploy_script(const std::string& build);

// The near side of the conversation. Pure: feed() takes what came in and says what to do.
class DeployTalk {
 public:
  // What to send before more input is fed: nothing, or the binary.
  enum class Ask { kNothing, kBinary };
  // Consumes whole marker lines; `rest` gets everything that belongs to the stream reader (noise included).
  Ask feed(std::string_view bytes, std::string& rest);
  const std::vector<std::string>& refusals() const { return refusals_; }  // "<folder>: <why>"
  bool no_place() const { return no_place_; }
  bool uploaded() const { return uploaded_; }

 private:
  std::string line_;
  std::vector<std::string> refusals_;
  bool stream_ = false;
  bool no_place_ = false;
  bool uploaded_ = false;
};

}  // namespace cluster
