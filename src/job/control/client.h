// The control socket of a run, on the side of who asks (job/control/server.h).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/json.h"
#include "os/fd.h"
#include "os/loop.h"
#include "wire/control_messages.h"

namespace phalanx::job {

class ControlClient {
 public:
  struct Handlers {
    std::function<void(const wire::Frame&)> frame;  // the payload is valid during the call
    std::function<void()> end;                      // the launcher has closed, or what it says makes no sense; called once
  };

  // Error: nobody listens there (the launcher is gone), or it may not be reached. The loop must outlive the client.
  static base::Result<std::unique_ptr<ControlClient>> connect(os::Loop& loop, const std::string& run_folder, const std::string& run_id,
                                                              Handlers handlers);
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

  // Small enough to fit in any socket's buffer.
  void ask(const wire::Ask& ask);
  // While our own reader takes no more: the launcher drops what it cannot send and says how much.
  void pause(bool paused);

 private:
  ControlClient(os::Loop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}
  void read();
  void finish();

  os::Loop& loop_;
  Handlers handlers_;
  os::Fd fd_;
  os::WatchId watch_ = 0;
  wire::FrameReader reader_;
  bool greeted_ = false;
};

// One status, within `most`. Error kUnreachable: no launcher; kTimeout: it does not answer.
base::Result<base::Json> ask_status(const std::string& run_folder, const std::string& run_id, os::milliseconds most);
// What every rank does now (docs/formats/control-socket.md), within `most`. Errors as above.
base::Result<base::Json> ask_look(const std::string& run_folder, const std::string& run_id, os::milliseconds most);

}  // namespace phalanx::job
