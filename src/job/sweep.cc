#include "job/sweep.h"

#include "job/facts_bounds.h"

#include <signal.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/json_fields.h"
#include "base/try.h"
#include "machine/facts.h"

namespace phalanx::job {
namespace {

constexpr os::milliseconds kTick{200};
constexpr os::milliseconds kAnswer{10'000};  // beyond the patience: kill, look again, a busy machine
constexpr os::milliseconds kProbeDeadline{2000};

}  // namespace

bool SweptHost::clean() const {
  return answered && held.empty() && swept.unseen.empty() &&
         std::all_of(swept.found.begin(), swept.found.end(), [](auto& p) { return p.gone; });
}

HostSweep::HostSweep(os::Loop& loop, std::vector<hosts::Target> targets, const std::vector<const hosts::Transport*>& transports,
                     hosts::Payload& payload, hosts::OpenerOptions options, SweepRequest wish)
    : loop_(loop),
      wish_(std::move(wish)),
      hosts_(targets.size()),
      opener_(loop, payload, hosts::Opener::with_transports(targets, transports), options,
              hosts::Opener::Handlers{[this](size_t h, const wire::Frame& frame) { on_frame(h, frame); },
                                      [this](size_t h, base::Error error, std::optional<wire::GuardEnd>) {
                                        if (!hosts_[h].over && !hosts_[h].found.answered) hosts_[h].found.error = std::move(error);
                                        settle(h);
                                      }},
              0) {
  for (size_t h = 0; h < targets.size(); ++h) hosts_[h].found.name = targets[h].name;
}

base::Result<std::vector<SweptHost>> HostSweep::run() {
  TRY(loop_.on_child([this](pid_t pid, int status) { opener_.on_child(pid, status); }));
  os::TimerId tick = loop_.every(kTick, [this] { check_deadlines(); });
  opener_.start();
  if (!std::all_of(hosts_.begin(), hosts_.end(), [](const Host& h) { return h.over; })) loop_.run();
  loop_.cancel(tick);
  std::vector<SweptHost> found;
  for (Host& host : hosts_) found.push_back(std::move(host.found));
  return found;
}

void HostSweep::await(size_t h, os::milliseconds patience) { hosts_[h].deadline = os::mono_now() + patience; }

void HostSweep::on_frame(size_t h, const wire::Frame& frame) {
  if (hosts_[h].over) return;
  if (frame.type == wire::FrameType::kHello) {
    if (hosts_[h].asked) return;
    hosts_[h].asked = true;
    std::string frames;
    (void)wire::encode(frames, wire::Sweep{wish_.run_id, static_cast<uint32_t>(wish_.patience.count())});
    opener_.connection(h)->send(frames);
    return await(h, wish_.patience + kAnswer);
  }
  if (frame.type == wire::FrameType::kSwept) {
    base::Result<wire::Swept> swept = wire::decode<wire::Swept>(frame.payload);
    if (swept.ok()) return take(h, *swept);
  }
  if (frame.type == wire::FrameType::kProbed) {
    base::Result<wire::Probed> probed = wire::decode<wire::Probed>(frame.payload);
    if (probed.ok()) return take(h, *probed);
  }
}

void HostSweep::take(size_t h, const wire::Swept& swept) {
  Host& host = hosts_[h];
  if (host.found.answered) return;
  host.found.swept = swept;
  host.found.answered = true;
  // Whoever logs in may be shown fewer GPUs than there are (CUDA_VISIBLE_DEVICES): the probe asks the driver.
  wire::Probe probe;
  probe.job.directory = "/";
  probe.deadline_ms = static_cast<uint32_t>(kProbeDeadline.count());
  std::string frames;
  (void)wire::encode(frames, probe);
  opener_.connection(h)->send(frames);
  await(h, kProbeDeadline + kAnswer);
}

void HostSweep::take(size_t h, const wire::Probed& probed) {
  Host& host = hosts_[h];
  base::Result<machine::Facts> facts = facts_from_host(probed.json);
  if (!probed.outcome.ok || !facts.ok()) return settle(h);
  host.found.gpus_seen = !facts->gpus.devices.empty();
  std::set<int64_t> pids;
  if (h < wish_.pids.size()) pids = wish_.pids[h];
  for (const wire::SweptProcess& p : host.found.swept.found) pids.insert(p.pid);
  // A living process with such a pid that the sweep has not found is another one: pids are used again.
  for (const machine::Gpu& gpu : facts->gpus.devices)
    for (const machine::GpuProcess& process : gpu.processes)
      if (pids.count(process.pid) && !process.visible) host.found.held.push_back({gpu.index, process.pid, process.used_bytes});
  settle(h);
}

void HostSweep::settle(size_t h) {
  if (hosts_[h].over) return;
  hosts_[h].over = true;
  if (hosts::Connection* connection = opener_.connection(h)) {
    std::string frames;
    (void)wire::encode(frames, wire::Finish{});
    connection->send(frames);
  }
  if (std::all_of(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.over; })) loop_.stop();
}

void HostSweep::check_deadlines() {
  os::Mono now = os::mono_now();
  for (size_t h = 0; h < hosts_.size(); ++h) {
    Host& host = hosts_[h];
    if (host.over || host.deadline.ns == 0 || now < host.deadline) continue;
    if (!host.found.answered)
      host.found.error = base::fail(base::ErrorKind::kTimeout, fmt::format("{}: no answer about leftover processes", host.found.name));
    if (hosts::Connection* connection = opener_.connection(h)) connection->kill(SIGKILL);
    settle(h);
  }
}

}  // namespace phalanx::job
