// What others on this machine can see of a run while it lives: the other end of `phalanx ps`, `attach` and `stop`
// (job/control/server.h), fed by Show.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "job/control/server.h"
#include "job/runner.h"
#include "logs/progress_bar.h"
#include "logs/runs/files.h"

namespace phalanx::cli {

using StopRun = std::function<void(std::optional<os::milliseconds> grace, bool kill)>;

class Live {
 public:
  static constexpr os::milliseconds kLastWords{2000};  // how long a slow client is waited for at the end

  // files: removes the socket at the end; outlives this.
  Live(os::Loop& loop, std::string id, std::string folder, logs::Files& files)
      : loop_(loop), id_(std::move(id)), folder_(std::move(folder)), files_(files) {}
  base::Status open();
  void on_stop(StopRun stop) { stop_ = std::move(stop); }
  void on_look(std::function<void()> look) { look_ = std::move(look); }
  void looked(const std::string& json);  // the answer to it

  void output(const wire::Output& output);
  void progress(int rank, const wire::RankProgress& progress);
  void started(const job::State& state);
  void event(const job::State& state);
  void talk(const std::string& text);
  void detached() { detached_ = true; }
  void ended(int exit_code);

  // docs/formats/control-socket.md
  base::Json status() const;
  // Of the lowest rank that has reported: for run.json at the end. Null if none has.
  base::Json last_progress() const;

 private:
  struct Rank {
    std::string host;
    std::optional<wire::RankProgress> progress;
    os::Mono reported;
    std::string bar;  // its latest state
  };
  std::string catch_up() const;

  os::Loop& loop_;
  std::string id_, folder_;
  logs::Files& files_;
  StopRun stop_;
  std::function<void()> look_;
  std::unique_ptr<job::ControlServer> server_;
  std::vector<Rank> ranks_;
  job::Phase phase_ = job::Phase::kOpening;
  std::string last_talk_;
  os::Mono heard_ = os::mono_now();  // when a rank last said anything
  bool detached_ = false;
};

const char* phase_name(job::Phase phase);

}  // namespace phalanx::cli
