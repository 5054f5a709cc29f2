// A session over a connection that an ssh keeps open: asked for at its control socket, as `ssh -S SOCKET HOST COMMAND` does, but without a
// program of its own, whose start costs more than all the rest. That ssh reads and writes our pipes; what it says to us is only whether the
// session has begun, and how its command ended. OpenSSH's PROTOCOL.mux, version 4 (OpenSSH 5.4 and later).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/fd.h"

namespace phalanx::hosts {

struct SessionRequest {
  std::string folder, socket;            // where the ssh listens: a name in a folder
  std::string command;                   // for the shell over there
  std::vector<std::string> environment;  // "K=V" that it is offered, as with SendEnv
};

class SshSession {
 public:
  enum class State {
    kAsked,
    kOpen,
    kRefused,  // it has not begun, or nobody can tell; ssh itself would try a login of its own now
    kEnded,
  };
  // Never waits. Error: the ssh does not listen, or who listens is not ours.
  static base::Result<SshSession> connect(const SessionRequest& request);
  // in, out, err: of the command; the ssh gets copies of them. Never waits. Error: nothing has begun, and nothing will. Call once.
  base::Status ask(const SessionRequest& request, int in, int out, int err);

  // To be closed to end the session.
  int fd() const { return socket_.get(); }
  // To be called when fd() is readable. After kRefused or kEnded not again.
  State read();
  // After kEnded: of the command; 255, as of ssh, where the connection ended before it.
  int exit_code() const { return exit_code_; }

 private:
  explicit SshSession(os::Fd socket) : socket_(std::move(socket)) {}
  State take(std::string_view packet);

  os::Fd socket_;
  std::string received_;
  State state_ = State::kAsked;
  int exit_code_ = 255;
};

}  // namespace phalanx::hosts
