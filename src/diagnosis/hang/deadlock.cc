#include "diagnosis/hang/deadlock.h"

#include <algorithm>
#include <array>

namespace phalanx::diagnosis {
namespace {

using machine::ProcessSample;
using machine::RankSample;
using machine::SocketSample;
using machine::ThreadSample;

constexpr int64_t kTicks = 30;  // ms of CPU: a watchdog that wakes up, at the resolution of proc(5)

// Runtimes of accelerators: what their devices do is not seen from outside.
bool drives_a_device(const ProcessSample& process) {
  static constexpr std::array<std::string_view, 7> kModules = {"libnccl",     "librccl",   "libhccl", "libcuda",
                                                               "libascendcl", "libamdhip", "libze_"};
  for (const ThreadSample& t : process.threads)
    for (const std::string& frame : t.frames)
      if (std::any_of(kModules.begin(), kModules.end(), [&](auto module) { return module_in(frame).starts_with(module); })) return true;
  return false;
}

bool rests(const ThreadSample& t) { return t.state == "S"; }

bool called_by_torch(const ThreadSample& t) {
  static constexpr std::array<std::string_view, 4> kTorch = {"libtorch", "libc10", "libgloo", "libmpi"};
  const std::string_view module = module_in(caller_of_libc(t));
  return std::any_of(kTorch.begin(), kTorch.end(), [&](auto one) { return module.starts_with(one); });
}

// Python's innermost line is PyTorch's, or one of the program that calls its C++ without a line between: store.wait().
bool python_agrees(const ThreadSample& t) {
  if (t.python.empty()) return true;
  const std::string& file = t.python.front().file;
  if (file.find("/torch/") != std::string::npos) return true;
  const bool library = file.find("/lib/python") != std::string::npos || file.find("-packages/") != std::string::npos;
  return !library && called_by_torch(t);
}

// The main thread is inside of PyTorch and waits, not for a time.
bool stands_in_torch(const ProcessSample& process) {
  auto main = std::find_if(process.threads.begin(), process.threads.end(), [&](const ThreadSample& t) { return t.tid == process.pid; });
  if (main == process.threads.end() || !waits_for_ranks(*main)) return false;
  return !main->wchan.empty() && main->wchan.find("nanosleep") == std::string::npos && python_agrees(*main);
}

bool same_sockets(const RankSample& first, const RankSample& then) {
  for (const SocketSample& s : then.sockets) {
    if (s.state == "SYN_SENT" || s.send_queue > 0 || s.receive_queue > 0 || s.unacked > 0) return false;
    if (s.state != "ESTABLISHED") continue;
    auto before = std::find_if(first.sockets.begin(), first.sockets.end(),
                               [&](const SocketSample& b) { return b.local == s.local && b.remote == s.remote; });
    if (before == first.sockets.end() || before->bytes_acked != s.bytes_acked || before->bytes_received != s.bytes_received) return false;
  }
  return true;
}

bool nothing_moved(const RankSample& first, const RankSample& then) {
  if (first.processes.size() != then.processes.size()) return false;
  int64_t used = 0;
  for (size_t i = 0; i < then.processes.size(); ++i) {
    const ProcessSample &before = first.processes[i], &now = then.processes[i];
    if (before.pid != now.pid || !std::all_of(now.threads.begin(), now.threads.end(), rests)) return false;
    used += now.cpu_ms - before.cpu_ms;
  }
  return used <= kTicks && same_sockets(first, then);
}

bool waits_for_another(const RankView& rank, double between_s) {
  if (!rank.first || !rank.then || !nothing_moved(*rank.first, *rank.then)) return false;
  const Activity activity = activity_of(&*rank.first, *rank.then, between_s);
  if (activity.doing != Doing::kCollective && activity.doing != Doing::kStore) return false;
  for (const ProcessSample& process : rank.then->processes) {
    if (drives_a_device(process)) return false;
    if (process.pid == activity.pid && !stands_in_torch(process)) return false;
  }
  return true;
}

}  // namespace

bool proved_deadlock(const HangInput& input) {
  if (input.devices || !input.unanswered.empty()) return false;
  bool any = false;
  for (const RankView& rank : input.ranks) {
    if (rank.exited) continue;
    if (!waits_for_another(rank, input.between_s)) return false;
    any = true;
  }
  return any;
}

}  // namespace phalanx::diagnosis
