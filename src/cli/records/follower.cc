#include "cli/records/follower.h"

#include <signal.h>

#include <fmt/format.h>

#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "cli/records/runs.h"

namespace phalanx::cli {

using words::tr;

Follower::Follower(os::Loop& loop, const logs::Run& run, view::View& view, Wanted wanted)
    : loop_(loop), run_(run), view_(view), wanted_of_(std::move(wanted)) {}

Follower::~Follower() {
  if (greeting_) loop_.cancel(greeting_);
}

base::Status Follower::connect() {
  job::ControlClient::Handlers handlers{[this](const wire::Frame& frame) { on_frame(frame); }, [this] { end(End::kGone); }};
  TRY_ASSIGN(client_, job::ControlClient::connect(loop_, run_.path, run_.id, std::move(handlers)));
  greeting_ = loop_.after(kGreeting, [this] {
    greeting_ = 0;
    end(End::kSilent);
  });
  view_.on_room([this] { client_->pause(false); });
  return base::ok();
}

base::Result<Follower::End> Follower::follow(std::function<bool()> on_signal) {
  for (int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    TRY(loop_.on_signal(s, [this, on_signal](const signalfd_siginfo&) {
      if (on_signal()) end(End::kLeft);
    }));
  if (!end_) loop_.run();
  if (*end_ != End::kGone) return *end_;
  // The launcher waits only so long for a slow reader; what it could not say stands in run.json and in the logs.
  logs::Run now = logs::look_at_run(run_.path, run_.id);
  if (now.life != logs::Life::kEnded) return *end_;
  view_.say(tr(language_here(), "phalanx: the last lines were not shown: this terminal is slower than the run; phalanx logs shows them"));
  exit_code_ = static_cast<int>(base::get_int(now.record, "exit_code").value_or(0) & 255);
  return End::kRunEnded;
}

void Follower::end(End how) {
  if (end_) return;
  end_ = how;
  loop_.stop();
}

void Follower::on_status(const base::Json& status) {
  std::vector<std::string> hosts;
  for (const base::Json& host : base::get_list(status, "host_of_rank")) hosts.push_back(host.is_string() ? host.get<std::string>() : "?");
  if (hosts.empty() || hosts == hosts_) return;
  hosts_ = std::move(hosts);
  wanted_ = wanted_of_(hosts_);
  view_.set_ranks(hosts_);
}

void Follower::on_frame(const wire::Frame& frame) {
  if (frame.type == wire::FrameType::kRunStatus) {
    if (greeting_) loop_.cancel(greeting_);
    greeting_ = 0;
    if (answered_) std::exchange(answered_, nullptr)();
    base::Result<wire::RunStatus> status = wire::decode<wire::RunStatus>(frame.payload);
    base::Result<base::Json> json = status.ok() ? base::parse_json(status->json) : base::Result<base::Json>(status.error());
    if (json.ok() && json->is_object()) on_status(*json);
  } else if (frame.type == wire::FrameType::kOutput) {
    base::Result<wire::Output> output = wire::decode<wire::Output>(frame.payload);
    if (!output.ok() || output->rank >= wanted_.size() || !wanted_[output->rank]) return;
    int rank = static_cast<int>(output->rank);
    if (output->kind == wire::OutputKind::kProgress) view_.bar(rank, output->data);
    else view_.line(rank, output->stream, output->data);
    if (!view_.wants_more()) client_->pause(true);
  } else if (frame.type == wire::FrameType::kProgress) {
    base::Result<wire::Progress> progress = wire::decode<wire::Progress>(frame.payload);
    base::Result<wire::RankProgress> parsed =
        progress.ok() ? wire::parse_rank_progress(progress->line) : base::Result<wire::RankProgress>(progress.error());
    if (parsed.ok() && progress->rank < wanted_.size()) view_.progress(static_cast<int>(progress->rank), *parsed);
  } else if (frame.type == wire::FrameType::kTalk) {
    base::Result<wire::Talk> talk = wire::decode<wire::Talk>(frame.payload);
    if (talk.ok()) view_.say("phalanx: " + talk->text);
  } else if (frame.type == wire::FrameType::kDropped) {
    base::Result<wire::Dropped> dropped = wire::decode<wire::Dropped>(frame.payload);
    if (dropped.ok())
      view_.say(tr(language_here(), "phalanx: {} were not shown because this terminal is slower than the run; phalanx logs shows them",
                   base::format_bytes(dropped->bytes)));
  } else if (frame.type == wire::FrameType::kRunEnded) {
    base::Result<wire::RunEnded> ended = wire::decode<wire::RunEnded>(frame.payload);
    exit_code_ = ended.ok() ? static_cast<int>(ended->exit_code) : 70;
    end(End::kRunEnded);
  }
}

}  // namespace phalanx::cli
