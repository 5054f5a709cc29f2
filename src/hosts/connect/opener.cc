#include "hosts/connect/opener.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "base/counted.h"
#include "base/text.h"
#include "hosts/connect/container_end.h"
#include "os/descriptor_limit.h"
#include "os/process.h"

namespace phalanx::hosts {

using base::ErrorKind;

constexpr os::milliseconds kStarvedPause{200};
constexpr os::milliseconds kSlept{5000};  // a timer that comes later than this shows that the launcher itself did not run

std::vector<Opener::Host> Opener::with_transports(const std::vector<Target>& targets, const std::vector<const Transport*>& transports) {
  PHALANX_CHECK(targets.size() == transports.size());
  std::vector<Host> hosts;
  for (size_t h = 0; h < targets.size(); ++h) hosts.push_back({targets[h], transports[h]});
  return hosts;
}

Opener::Opener(os::Loop& loop, Payload& payload, std::vector<Host> hosts, OpenerOptions options, Handlers handlers, uint32_t seed)
    : loop_(loop), payload_(payload), options_(options), handlers_(std::move(handlers)), random_(seed) {
  slots_.resize(hosts.size());
  for (size_t i = 0; i < hosts.size(); ++i) slots_[i].host = std::move(hosts[i]);
}

Opener::~Opener() {
  for (Slot& slot : slots_)
    if (slot.timer) loop_.cancel(slot.timer);
}

void Opener::start() { fill(); }

void Opener::soon(std::function<void()> call) {
  ++scheduled_;
  loop_.after(os::nanoseconds(0), [this, call = std::move(call)] {
    --scheduled_;
    call();
  });
}

Connection* Opener::connection(size_t host) { return slots_[host].phase == Phase::kOpen ? slots_[host].connection.get() : nullptr; }

void Opener::fill() {
  for (size_t i = 0; i < slots_.size() && opening_ < options_.fanout && !abandoned_; ++i) {
    Slot& slot = slots_[i];
    if (slot.phase != Phase::kWaiting || slot.timer) continue;
    int& same = opening_to_[slot.host.target.destination];
    if (same >= kSameDestination) continue;
    ++same;
    ++opening_;
    open(i);
  }
}

void Opener::open(size_t index) {
  Slot& slot = slots_[index];
  slot.phase = Phase::kOpening;
  slot.timed_out = false;
  slot.connection = std::make_unique<Connection>(
      loop_, payload_,
      Connection::Handlers{[this, index](const wire::Frame& frame) { on_frame(index, frame); },
                           [this, index](const Death& death, bool started) { on_end(index, death, started); }});
  os::milliseconds login = login_time(options_.timeout, slot.tries);
  Launch launch = slot.host.transport->launch(slot.host.target, slot.tries++);
  slot.began = os::mono_now();
  slot.patience = launch.warm ? std::min(kWarmPatience, options_.timeout) : login + options_.after_ssh;
  slot.timer = loop_.after(slot.patience, [this, index] { on_timeout(index); });
  base::Status opened = slot.connection->open(launch);
  if (opened.ok()) {
    slot.starved_since.reset();
    return;
  }
  std::string why = opened.error().message + (opened.error().cause.empty() ? "" : ": " + opened.error().cause);
  if (wait_for_descriptors(index, why)) return;
  // Nothing was spawned (no ssh program): the same for every try.
  soon([this, index, why] {
    slots_[index].tries = options_.most_tries;
    on_end(index, Death{127 << 8, why}, false);
  });
}

void Opener::on_frame(size_t index, const wire::Frame& frame) {
  Slot& slot = slots_[index];
  if (slot.phase == Phase::kOpening) {
    slot.phase = Phase::kOpen;
    answered_ = os::mono_now();
    slot.deployed = slot.connection->deployment().uploaded();
    loop_.cancel(slot.timer);
    slot.timer = 0;
    --opening_;
    --opening_to_[slot.host.target.destination];
    soon([this] { fill(); });
  }
  handlers_.frame(index, frame);
}

void Opener::on_timeout(size_t index) {
  Slot& slot = slots_[index];
  slot.timer = 0;
  if (slot.phase != Phase::kOpening) return;
  if (slot.connection->deployment().uploaded()) {
    // The program is being sent, or still being compressed (that is our own work and counts for nothing). ssh's keep-alive does not help
    // here: it is answered by the host's sshd even if the disk that the program is written to hangs.
    Connection::Upload upload = slot.connection->upload();
    os::Mono now = os::mono_now();
    os::nanoseconds left =
        upload.total == 0 ? os::nanoseconds(options_.timeout) : std::max(upload.moved, slot.awake) + upload_patience(upload) - now;
    // This launcher was stopped for a while, and ssh probably with it: the time is given once more.
    if (left < -kSlept) {
      slot.awake = now;
      left = upload_patience(upload);
    }
    if (left > os::nanoseconds(0)) {
      slot.timer = loop_.after(left, [this, index] { on_timeout(index); });
      return;
    }
    slot.stalled = true;
    slot.connection->kill(SIGKILL);
    return;
  }
  if (os::nanoseconds more = more_time(slot); more.count() > 0) {
    slot.timer = loop_.after(more, [this, index] { on_timeout(index); });
    slot.extended = true;
    return;
  }
  if (slot.extended) slot.waited = std::chrono::floor<std::chrono::seconds>(os::mono_now() - slot.began);
  slot.timed_out = true;
  slot.connection->kill(SIGKILL);
}

os::nanoseconds Opener::more_time(const Slot& slot) const {
  if (!answered_) return {};
  os::Mono now = os::mono_now();
  // A kept connection that hangs is given up sooner: there is another way.
  os::nanoseconds quiet = std::min(options_.quiet, slot.patience / 2);
  return std::min(quiet - (now - *answered_), options_.longest - (now - slot.began));
}

os::milliseconds Opener::upload_patience(const Connection::Upload& upload) const {
  if (upload.sent < upload.total) return options_.upload_stall;
  return options_.upload_stall + os::milliseconds(upload.total * 1000 / options_.slowest_link);
}

// That this machine has no descriptors left says nothing of the host: it is tried again until its time is over.
bool Opener::wait_for_descriptors(size_t index, const std::string& why) {
  Slot& slot = slots_[index];
  if (os::can_open_more(os::kSpawnDescriptors)) {
    slot.starved_since.reset();
    return false;
  }
  if (!slot.starved_since) slot.starved_since = os::mono_now();
  slot.starved_by = why;
  if (abandoned_ || os::mono_now() - *slot.starved_since > options_.timeout) return false;
  --slot.tries;
  --opening_;
  --opening_to_[slot.host.target.destination];
  slot.phase = Phase::kWaiting;
  loop_.cancel(slot.timer);
  slot.timer = loop_.after(kStarvedPause, [this, index] {
    slots_[index].timer = 0;
    fill();
  });
  return true;
}

bool Opener::retry(size_t index, const Death& death) {
  Slot& slot = slots_[index];
  if (slot.stalled) return false;
  // A shared connection whose far end is gone hangs; the second try goes without one.
  bool worth = slot.timed_out ? slot.tries < 2 : !death.spawned || slot.host.transport->may_retry(death);
  if (!worth || slot.tries >= options_.most_tries || abandoned_) return false;
  options_.fanout = std::max(4, options_.fanout / 2);
  slot.phase = Phase::kWaiting;
  int pause_ms = 50 + static_cast<int>(random_() % static_cast<unsigned>(150 << std::min(slot.tries, 4)));
  slot.timer = loop_.after(os::milliseconds(slot.timed_out ? 0 : pause_ms), [this, index] {
    slots_[index].timer = 0;
    fill();
  });
  return true;
}

void Opener::on_end(size_t index, const Death& death, bool started) {
  Slot& slot = slots_[index];
  if (slot.phase == Phase::kEnded) return;
  if (slot.timer) loop_.cancel(slot.timer);
  slot.timer = 0;
  if (slot.phase == Phase::kOpening) {
    --opening_;
    --opening_to_[slot.host.target.destination];
    soon([this] { fill(); });
    if (!started && retry(index, death)) return;
  }
  slot.phase = Phase::kEnded;
  handlers_.end(index, explain(slot, death, started), started ? wire::guard_end(death.status) : std::nullopt);
}

base::Error Opener::explain(const Slot& slot, const Death& death, bool started) const {
  const std::string& name = slot.host.target.name;
  if (slot.starved_since)
    return base::fail(ErrorKind::kUnfit, fmt::format("{}: this machine could not start the program that reaches the host", name))
        .because(slot.starved_by)
        .with_hint("ulimit -Hn    # how many files the launcher may hold open at once");
  if (slot.timed_out)
    return base::fail(ErrorKind::kUnreachable,
                      fmt::format("{}: no answer within {}", name,
                                  base::format_duration(std::max<os::milliseconds>(options_.timeout, slot.waited))))
        .because(death.stderr_text.empty() ? "no data arrived over the connection" : std::string(base::trim(death.stderr_text)))
        .with_hint(slot.host.transport->try_by_hand(slot.host.target));
  if (slot.stalled) return explain_stall(slot, death);
  const DeployTalk& talk = slot.connection->deployment();
  if (talk.no_place()) {
    std::string why;
    for (const std::string& refusal : talk.refusals()) why += (why.empty() ? "" : "\n          ") + refusal;
    return base::fail(ErrorKind::kUnfit, fmt::format("{}: no directory on the host can hold the agent", name))
        .because(why)
        .with_hint(fmt::format("{}, and set PHALANX_CACHE=<directory> in the host's login environment",
                               typed(slot.host.target, "mkdir -p DIRECTORY")));
  }
  if (std::optional<base::Error> error = explain_container(slot.host.target, death, started)) return *std::move(error);
  if (!started) return slot.host.transport->explain(slot.host.target, death);
  std::string how = WIFSIGNALED(death.status) ? fmt::format("was killed by {}", os::signal_name(WTERMSIG(death.status)))
                                              : fmt::format("exited with code {}", WEXITSTATUS(death.status));
  const std::string said(base::trim(without_marks(death.stderr_text)));
  return base::fail(ErrorKind::kUnreachable, fmt::format("{}: lost contact with the host", name))
      .because(said.empty() ? fmt::format("the connection {}", how) : said);
}

base::Error Opener::explain_stall(const Slot& slot, const Death& death) const {
  Connection::Upload upload = slot.connection->upload();
  bool all = upload.sent == upload.total;
  std::string said(base::trim(death.stderr_text));
  std::string why = all ? "the program was sent completely, but no agent started on the host"
                        : "the connection accepts no more data: a file system on the host hangs, or the link to the host is down";
  return base::fail(ErrorKind::kUnreachable,
                    base::counted("{}: sending the program stalled: {} of {} bytes sent, no progress for {}", slot.host.target.name,
                                  upload.sent, upload.total, base::format_duration(upload_patience(upload))))
      .because(fmt::format("{} (the host writes to {}){}", why, slot.connection->deployment().folder(),
                           said.empty() ? "" : "\n          " + said))
      .with_hint(typed(slot.host.target, "df -h ~/.cache /var/tmp /tmp"));
}

bool Opener::on_child(pid_t pid, int status) {
  return std::any_of(slots_.begin(), slots_.end(), [&](Slot& slot) { return slot.connection && slot.connection->on_child(pid, status); });
}

void Opener::abandon() {
  abandoned_ = true;
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.phase == Phase::kOpening) slot.connection->kill(SIGKILL);
    if (slot.phase != Phase::kWaiting) continue;
    if (slot.timer) loop_.cancel(slot.timer);
    slot.timer = 0;
    slot.phase = Phase::kEnded;
    soon([this, i] {
      handlers_.end(i, base::fail(ErrorKind::kInterrupted, fmt::format("{}: not opened", slots_[i].host.target.name)), std::nullopt);
    });
  }
}

void Opener::shut() {
  abandon();
  for (Slot& slot : slots_)
    if (slot.phase == Phase::kOpen) slot.connection->kill(SIGKILL);
}

bool Opener::over() const {
  return scheduled_ == 0 && std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) {
           return slot.phase == Phase::kEnded && slot.timer == 0 &&
                  (!slot.connection || !slot.connection->begun() || slot.connection->ended());
         });
}

}  // namespace phalanx::hosts
