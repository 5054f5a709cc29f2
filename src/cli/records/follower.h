// One run, followed over its control socket until it ends or the operator leaves: what attach and stop share.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "job/control/client.h"
#include "logs/runs/run_list.h"
#include "os/loop.h"
#include "view/terminal/terminal.h"

namespace phalanx::cli {

class Follower {
 public:
  enum class End {
    kRunEnded,  // the launcher has said so
    kGone,      // the socket was closed without a word: the launcher has died
    kSilent,    // it took the connection and says nothing
    kLeft,      // the operator has left
  };
  static constexpr os::milliseconds kGreeting{5000};  // for its first answer

  // wanted: the ranks whose output is shown, given their hosts.
  using Wanted = std::function<std::vector<bool>(const std::vector<std::string>& hosts)>;
  Follower(os::Loop& loop, const logs::Run& run, view::View& view, Wanted wanted);
  ~Follower();

  // Error: no launcher.
  base::Status connect();
  // Once, when the launcher has answered: from then on nothing of the run is missed.
  void when_answered(std::function<void()> call) { answered_ = std::move(call); }
  void ask(const wire::Ask& ask) { client_->ask(ask); }
  void leave() { end(End::kLeft); }
  // Runs the loop until the end. on_signal: called for SIGINT and its kin; true: leave.
  base::Result<End> follow(std::function<bool()> on_signal);
  int exit_code() const { return exit_code_; }  // of kRunEnded

 private:
  void on_frame(const wire::Frame& frame);
  void on_status(const base::Json& status);
  void end(End how);

  os::Loop& loop_;
  const logs::Run& run_;
  view::View& view_;
  Wanted wanted_of_;
  std::unique_ptr<job::ControlClient> client_;
  std::vector<std::string> hosts_;
  std::vector<bool> wanted_;
  os::TimerId greeting_ = 0;
  std::optional<End> end_;
  int exit_code_ = 0;
  std::function<void()> answered_;
};

}  // namespace phalanx::cli
