// One host's connection: the transport's process (or a session that is asked for without one), the deployment talk, then frames. Never
// blocks; every byte waits in a bounded buffer.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "hosts/connect/deploy.h"
#include "hosts/connect/payload.h"
#include "hosts/connect/transport.h"
#include "os/fd.h"
#include "os/loop.h"
#include "wire/frame.h"

namespace phalanx::hosts {

class Connection {
 public:
  struct Handlers {
    std::function<void(const wire::Frame&)> frame;  // the payload is valid during the call
    // The stream is over, whatever the cause; called once, after the last frame and after the process was reaped, from the loop. started:
    // the agent's stream had begun.
    std::function<void(const Death& death, bool started)> end;
  };

  // How far the program's way to the host is. `sent` counts what the transport's process has taken: some of it may still be in buffers
  // between here and the host.
  struct Upload {
    size_t sent = 0, total = 0;  // bytes; total is 0 until the host has asked for the program and the program is ready
    os::Mono moved;              // when `sent` last grew, or the sending began
  };

  Connection(os::Loop& loop, Payload& payload, Handlers handlers);
  ~Connection();  // kills the transport's process if it still runs
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  base::Status open(const Launch& launch);
  // A frame (or several) for the agent.
  void send(std::string_view frames);
  // Of what was sent, what the transport's process has not taken yet. `call` comes from the loop when all has been taken.
  size_t pending() const { return upload_.size() + outgoing_.size() - sent_; }
  void on_drained(std::function<void()> call) { drained_ = std::move(call); }
  // Much will be sent: the process is to have something to read while the next is made.
  void widen();
  // Ends the stream: the agent sees its input close. The process then ends by itself; kill() does not wait for that.
  void close_input();
  void kill(int signal_number);
  bool on_child(pid_t pid, int status);  // from Loop::on_child: true if it was ours
  const DeployTalk& deployment() const { return talk_; }
  Upload upload() const { return {sent_of_upload_, upload_bytes_, upload_moved_}; }
  const std::string& noise() const { return reader_.noise(); }
  bool ended() const { return ended_; }
  bool begun() const { return begun_; }  // there is, or was, a process or a session

 private:
  // The process's ends of the pipes.
  struct FarEnds {
    os::Fd in, out, err;
  };
  base::Status spawn(const Launch& launch, const FarEnds& far);
  base::Status ask(const Launch& launch, FarEnds& far);
  void hear_session();
  void end_session();
  void on_exit(int status);
  void send_raw(std::string_view bytes);
  void read_stdout();
  void read_stderr();
  void finish_stdout();
  void take(std::string_view bytes);
  void request_upload(Encoding encoding);
  void write_more();
  void break_stream(const base::Error& error);
  void maybe_end();

  os::Loop& loop_;
  Payload& payload_;
  Handlers handlers_;
  pid_t pid_ = 0;
  std::optional<SshSession> session_;
  os::WatchId session_watch_ = 0;
  Launch instead_;  // while the session has not begun: what runs if it is refused
  FarEnds far_;
  os::Fd in_, out_, err_;  // the process's stdin, stdout, stderr: our ends
  os::TimerId drain_timer_ = 0, kill_timer_ = 0;
  os::WatchId in_watch_ = 0, out_watch_ = 0, err_watch_ = 0;
  bool begun_ = false, deploys_ = false, magic_sent_ = false, close_wanted_ = false, exited_ = false, ended_ = false;
  DeployTalk talk_;
  wire::FrameReader reader_;
  std::string_view upload_;  // what is left to send of the payload; goes before outgoing_
  size_t sent_of_upload_ = 0, upload_bytes_ = 0;
  os::Mono upload_moved_;
  std::string outgoing_;
  size_t sent_ = 0;  // of outgoing_
  std::function<void()> drained_;
  Death death_;
};

}  // namespace phalanx::hosts
