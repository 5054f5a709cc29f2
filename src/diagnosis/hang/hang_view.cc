#include "diagnosis/hang/hang_view.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"

namespace phalanx::diagnosis {
namespace {

using doctor::Words;
using machine::ProcessSample;
using machine::RankSample;
using machine::ThreadSample;
using words::tr;

constexpr size_t kDirect = 8;        // frames within which a wait shows who called it
constexpr double kBusy = 0.5;        // of one CPU
constexpr double kManyFaults = 100;  // major faults a second: it lives on swap

bool begins(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }
bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

const ThreadSample* main_of(const ProcessSample& p) {
  for (const ThreadSample& t : p.threads)
    if (t.tid == p.pid) return &t;
  return p.threads.empty() ? nullptr : &p.threads.front();
}

const ProcessSample* find(const RankSample* sample, int64_t pid) {
  if (!sample) return nullptr;
  for (const ProcessSample& p : sample->processes)
    if (p.pid == pid) return &p;
  return nullptr;
}

bool is_communication(std::string_view frame) {
  std::string_view module = module_in(frame), function = function_in(frame);
  return begins(module, "libnccl") || begins(module, "librccl") || begins(module, "libmpi") || begins(module, "libhccl") ||
         begins(function, "gloo::") || begins(function, "c10d::Work::") || begins(function, "c10d::ProcessGroup") ||
         begins(function, "c10d::TCPStore") || begins(function, "c10d::PrefixStore") || begins(function, "MPI_");
}

// Threads of libraries that always wait, whether or not a collective is under way.
bool is_idle_thread(const ThreadSample& t) {
  size_t looked = std::min<size_t>(t.frames.size(), 5);
  for (size_t i = 0; i < looked; ++i) {
    std::string_view function = function_in(t.frames[i]);
    if (has(function, "Loop::run") || has(function, "Device::loop")) return true;
    if (has(function, "ProcessGroupGloo::runLoop") || has(function, "watchdogHandler") || has(function, "heartbeatMonitor")) return true;
  }
  return begins(t.name, "pt_nccl_") || begins(t.name, "NCCL");
}

// Which collective, by the outermost exported function of gloo, NCCL or MPI; else by what stands inside of the work's execute().
std::string op_of(const ThreadSample& t) {
  std::string op;
  for (size_t i = 0; i < t.frames.size(); ++i) {
    std::string_view f = function_in(t.frames[i]);
    bool gloo = begins(f, "gloo::") && f.size() > 6 && f[6] >= 'a' && f[6] <= 'z' && !has(f.substr(6), "::");
    bool other = (begins(f, "nccl") || begins(f, "pnccl") || begins(f, "MPI_")) && f.size() > 4;
    if (gloo || other) op = f;
    if (!has(f, "AsyncWork::execute")) continue;
    if (!op.empty()) return op;
    for (size_t j = i; j-- > 0;)
      if (begins(module_in(t.frames[j]), "libtorch")) return t.frames[j];
  }
  return op;
}

bool waits_for_storage(const ThreadSample& t) {
  static constexpr std::string_view kStorage[] = {"fuse_",       "request_wait_answer",
                                                  "nfs",         "rpc_",
                                                  "folio_wait",  "wait_on_page",
                                                  "io_schedule", "wait_on_bit",
                                                  "jbd2",        "ext4_",
                                                  "xfs_",        "btrfs",
                                                  "ceph_",       "cl_sync",
                                                  "ll_",         "ptlrpc",
                                                  "gpfs",        "blk_",
                                                  "cifs_",       "smb2_"};
  // What else is not to be interrupted: a parent behind vfork(), a frozen task, the memory map's lock.
  static constexpr std::string_view kOther[] = {"kernel_clone", "wait_for_vfork", "do_fork", "__refrigerator", "rwsem_", "down_", "__down"};
  auto one_of = [&](auto& parts) {
    return std::any_of(std::begin(parts), std::end(parts), [&](std::string_view part) { return begins(t.wchan, part); });
  };
  return (t.state == "S" && one_of(kStorage)) || (t.state == "D" && !one_of(kOther));
}

int64_t tries(const machine::SocketSample& s) { return std::clamp<int64_t>(s.retransmits, 0, 1000) + 1; }

std::string on(const ThreadSample& t) { return t.waits_on.empty() ? "" : " (" + t.waits_on + ")"; }

// Stopped, frozen, traced, waiting for storage: whichever process of the rank it is.
std::optional<Activity> held(const RankSample* first, const RankSample& then) {
  Activity a;
  a.pid = then.pid;
  if (then.group.frozen) {
    a.doing = Doing::kFrozen;
    a.words = tr("its cgroup is frozen: {}", then.group.frozen_by);
    return a;
  }
  for (const ProcessSample& p : then.processes) {
    a.pid = p.pid;
    std::string who = fmt::format("{} ({})", p.pid, p.name);
    if (p.state == "T") {
      a.doing = Doing::kStopped;
      a.words = tr("process {} is stopped (state T: SIGSTOP, or a terminal's SIGTTIN or SIGTTOU)", who);
      return a;
    }
    if (p.state == "t" || (p.tracer > 0 && p.state == "T")) {
      a.doing = Doing::kTraced;
      std::string by = fmt::format("{} ({})", p.tracer, p.tracer_name);
      a.words = tr("process {} is stopped by the debugger {}", who, by);
      return a;
    }
  }
  for (const ProcessSample& p : then.processes) {
    const ProcessSample* before = find(first, p.pid);
    for (const ThreadSample& t : p.threads) {
      if (!waits_for_storage(t)) continue;
      bool still = !before;
      if (before)
        for (const ThreadSample& b : before->threads) still = still || (b.tid == t.tid && b.wchan == t.wchan && b.cpu_ms == t.cpu_ms);
      if (!still) continue;
      a.doing = Doing::kDisk;
      a.pid = p.pid;
      std::string who = fmt::format("{} ({})", p.pid, p.name);
      a.words = tr("process {} waits for storage in the kernel: state {}, {}{}", who, t.state, t.wchan, on(t));
      return a;
    }
  }
  return std::nullopt;
}

std::optional<Activity> swapping(const RankSample* first, const RankSample& then, double between_s) {
  for (const ProcessSample& p : then.processes) {
    const ProcessSample* before = find(first, p.pid);
    if (!before || p.swap_kb < 1024 || between_s <= 0) continue;
    double faults = (static_cast<double>(p.major_faults) - static_cast<double>(before->major_faults)) / between_s;
    if (faults < kManyFaults) continue;
    Activity a;
    a.doing = Doing::kSwapping;
    a.pid = p.pid;
    std::string much = base::format_bytes(static_cast<uint64_t>(p.swap_kb) * 1024);
    a.words = tr("{} of process {} ({}) are swapped out; {:.0f} pages per second are read back", much, p.pid, p.name, faults);
    return a;
  }
  return std::nullopt;
}

// The process that trains: the one with communication on a stack, else the first that is no shell around another.
const ProcessSample* trainer(const RankSample& sample) {
  for (const ProcessSample& p : sample.processes)
    for (const ThreadSample& t : p.threads)
      for (const std::string& frame : t.frames)
        if (is_communication(frame)) return &p;
  for (size_t i = 0; i < sample.processes.size(); ++i) {
    const ProcessSample& p = sample.processes[i];
    bool shell = p.name == "sh" || p.name == "bash" || p.name == "dash" || p.name == "zsh" || p.name == "env" || p.name == "numactl";
    if (!shell || i + 1 == sample.processes.size()) return &p;
  }
  return nullptr;
}

std::optional<Activity> communicating(const ProcessSample& p) {
  const ThreadSample* main = main_of(p);
  std::optional<Activity> found;
  auto take = [&](const ThreadSample& t) {
    found.emplace();
    found->doing = Doing::kCollective;
    found->pid = p.pid;
    found->op = op_of(t);
    found->op_name = has(found->op, "!") ? "" : found->op;
    std::string in = found->op_name.empty() ? "" : " " + found->op_name;
    found->words = tr("waits in a collective{}", in);
  };
  for (const ThreadSample& t : p.threads) {
    if (is_idle_thread(t) || t.tid == p.pid) continue;
    for (size_t i = 0; i < std::min(kDirect, t.frames.size()) && !found; ++i)
      if (has(function_in(t.frames[i]), "gloo::transport::") || begins(function_in(t.frames[i]), "nccl") ||
          begins(module_in(t.frames[i]), "libnccl"))
        take(t);
  }
  if (found) return found;
  for (size_t i = 0; main && i < std::min(kDirect, main->frames.size()); ++i) {
    std::string_view f = function_in(main->frames[i]);
    if (begins(f, "c10d::TCPStore") || begins(f, "c10d::PrefixStore") || begins(f, "c10d::detail::")) {
      Activity a;
      a.doing = Doing::kStore;
      a.pid = p.pid;
      a.words = tr("waits for a key of the store: other ranks have not reached the rendezvous");
      return a;
    }
    if (is_communication(main->frames[i]) || begins(f, "cudaStreamSynchronize") || begins(f, "cudaEventSynchronize")) {
      take(*main);
      return found;
    }
  }
  return std::nullopt;
}

std::string only_child(const RankSample& sample, int64_t parent) {
  std::string names;
  for (const ProcessSample& p : sample.processes)
    if (p.parent == parent && names.size() < 80) names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", p.pid, p.name);
  return names;
}

std::string place_words(const std::string& file, std::string_view line, std::string_view function) {
  return base::printable(fmt::format("{}:{} ({})", file.substr(file.rfind('/') + 1), line, function), 120);
}
bool is_library(std::string_view file) { return has(file, "/lib/python") || has(file, "-packages/") || has(file, "<frozen"); }

// Where a process that Python has forked is in the user's program. Its outermost frames are copies of its parent's: they end where
// multiprocessing starts the child. Empty: only in a library (a worker that waits for its next task), or not found out.
std::string place_of_worker(const ProcessSample& worker) {
  const ThreadSample* main = main_of(worker);
  if (!main) return "";
  for (const machine::PythonFrame& f : main->python) {
    if (f.function == "_bootstrap" && has(f.file, "multiprocessing")) return "";
    if (!is_library(f.file)) return place_words(f.file, std::to_string(f.line), f.function);
  }
  return "";
}

// The process that a rank waits for: the one its pipe leads to ("pipe to 143 (python)"), else its only child.
int64_t awaited(const RankSample& sample, const ProcessSample& p, const ThreadSample& t) {
  int64_t child = 0, children = 0;
  for (const ProcessSample& other : sample.processes) {
    if (other.parent != p.pid) continue;
    if (has(t.waits_on, fmt::format("pipe to {} ", other.pid))) return other.pid;
    child = other.pid;
    ++children;
  }
  return children == 1 ? child : p.pid;
}

Activity waiting(const RankSample& sample, const ProcessSample& p, const ThreadSample& t) {
  Activity a;
  a.pid = p.pid;
  auto calls = [&](std::initializer_list<std::string_view> names) {
    for (size_t i = 0; i < std::min(kDirect, t.frames.size()); ++i)
      for (std::string_view name : names)
        if (function_in(t.frames[i]) == name) return true;
    return false;
  };
  std::string children = only_child(sample, p.pid);
  auto set = [&](Doing doing, Words words) {
    a.doing = doing;
    a.words = std::move(words);
    if (doing != Doing::kLoader) return;
    a.pid = awaited(sample, p, t);
    const ProcessSample* worker = a.pid == p.pid ? nullptr : find(&sample, a.pid);
    std::string place = worker ? place_of_worker(*worker) : "";
    // Workers share a pipe: of several, the one that is in the user's program holds the others up.
    for (const ProcessSample& other : sample.processes) {
      if (!place.empty() || other.parent != p.pid) continue;
      place = place_of_worker(other);
      if (!place.empty()) a.pid = other.pid;
    }
    if (!place.empty()) a.words += tr("; process {} is at {}", a.pid, place);
  };
  if (has(t.wchan, "nanosleep")) set(Doing::kSleeping, tr("sleeps (nanosleep)"));
  else if (begins(t.wchan, "do_wait")) set(Doing::kLoader, tr("waits for a child process to exit: {}", children));
  else if (has(t.wchan, "kernel_clone") || has(t.wchan, "do_fork") || has(t.wchan, "vfork"))
    set(Doing::kLoader, tr("waits for a program that it started (vfork): {}", children));
  else if (has(t.wchan, "pipe_read") || has(t.wchan, "unix_stream") || has(t.wchan, "unix_dgram") ||
           (has(t.wchan, "poll") && begins(t.waits_on, "pipe to ")))
    set(Doing::kLoader,
        tr("waits to read data from another process{}{}", on(t), children.empty() ? Words{} : tr("; it has started {}", children)));
  else if (has(t.wchan, "pipe_write")) set(Doing::kReading, tr("waits to write to a pipe that no process reads{}", on(t)));
  else if (has(t.wchan, "inet_stream_connect") || has(t.wchan, "inet_wait_for_connect"))
    set(Doing::kConnecting, tr("waits to connect{}", on(t)));
  else if (has(t.wchan, "futex") && calls({"PyEval_RestoreThread", "PyEval_AcquireThread", "PyGILState_Ensure"}))
    set(Doing::kLock, tr("waits for Python's global interpreter lock"));
  else if (has(t.wchan, "futex")) set(Doing::kLock, tr("waits for a lock or a queue in its own process (futex)"));
  else if (has(t.wchan, "poll") || has(t.wchan, "select") || has(t.wchan, "wait_woken") || has(t.wchan, "sk_wait") ||
           has(t.wchan, "tcp_recv"))
    set(Doing::kReading, tr("waits for a file descriptor{}{}", on(t), children.empty() ? Words{} : tr("; it has started {}", children)));
  else if (!t.wchan.empty()) set(Doing::kReading, tr("waits in the kernel: {}{}", t.wchan, on(t)));
  return a;
}

}  // namespace

std::string_view function_in(std::string_view frame) {
  size_t mark = frame.find('!');
  return mark == std::string_view::npos ? frame : frame.substr(mark + 1);
}
std::string_view module_in(std::string_view frame) { return frame.substr(0, std::min(frame.size(), frame.find('!'))); }

std::string_view caller_of_libc(const ThreadSample& thread) {
  for (const std::string& frame : thread.frames) {
    const std::string_view module = module_in(frame);
    if (!begins(module, "libc.") && !begins(module, "libpthread") && !begins(module, "ld-") && !begins(module, "linux-vdso")) return frame;
  }
  return {};
}

bool waits_for_ranks(const ThreadSample& thread) {
  // The end of backward in DistributedDataParallel. Its reducer is left on the stack elsewhere, and works too.
  if (thread.state != "R" && begins(function_in(caller_of_libc(thread)), "c10d::Reducer::")) return true;
  const auto direct = std::min(kDirect, thread.frames.size());
  return std::any_of(thread.frames.begin(), thread.frames.begin() + static_cast<ptrdiff_t>(direct),
                     [](const std::string& frame) { return is_communication(frame) || begins(function_in(frame), "c10d::detail::"); });
}

Activity activity_of(const RankSample* first, const RankSample& then, double between_s) {
  if (std::optional<Activity> a = held(first, then)) return *a;
  if (std::optional<Activity> a = swapping(first, then, between_s)) return *a;
  const ProcessSample* p = trainer(then);
  const ThreadSample* main = p ? main_of(*p) : nullptr;
  if (!main) return {};
  if (std::optional<Activity> a = communicating(*p)) return *a;
  for (const machine::SocketSample& s : then.sockets)
    if (s.state == "SYN_SENT") {
      Activity a;
      a.doing = Doing::kConnecting;
      a.pid = p->pid;
      a.words = tr("connecting to {}, no answer ({} attempts)", s.remote, tries(s));
      return a;
    }
  const ProcessSample* before = find(first, p->pid);
  double cpu = before && between_s > 0 ? (static_cast<double>(p->cpu_ms) - static_cast<double>(before->cpu_ms)) / 1000 / between_s : 0;
  if (main->state == "R" || cpu >= kBusy || main->wchan.empty()) {
    Activity a;
    a.doing = Doing::kRunning;
    a.pid = p->pid;
    a.words = tr("computes: {:.0f} % of a CPU", cpu * 100);
    return a;
  }
  return waiting(then, *p, *main);
}

std::string place_of(const RankSample& sample) {
  std::string fallback;
  auto look = [&](const ProcessSample& p) -> std::string {
    const ThreadSample* main = main_of(p);
    if (!main) return "";
    for (const machine::PythonFrame& f : main->python) {
      std::string place = place_words(f.file, std::to_string(f.line), f.function);
      if (!is_library(f.file)) return place;
      if (fallback.empty()) fallback = std::move(place);
    }
    return "";
  };
  const ProcessSample* first = trainer(sample);
  std::string place = first ? look(*first) : "";
  for (const ProcessSample& p : sample.processes)
    if (place.empty() && &p != first) place = look(p);
  return place.empty() ? fallback : place;
}

std::string place_in(std::string_view text) {
  // faulthandler: 'Thread 0x… (most recent call first):' and '  File "train.py", line 42 in validate'; the main thread comes last.
  // py-spy: 'Thread 812 (idle): "MainThread"' and '    validate (train.py:42)'; the main thread comes first.
  std::string best, fallback;
  bool spy = has(text, "\"MainThread\""), in_main = !spy;
  for (std::string_view line : base::split_lines(text)) {
    std::string file, number, function;
    if (begins(line, "Thread ") || begins(line, "Current thread ")) {
      in_main = !spy || has(line, "\"MainThread\"");
      if (!spy) best.clear(), fallback.clear();
      continue;
    }
    if (!in_main) continue;
    size_t quote = line.find("File \"");
    if (quote != std::string_view::npos) {
      size_t end = line.find("\", line ", quote), in = line.find(" in ", quote);
      if (end == std::string_view::npos || in == std::string_view::npos || in < end) continue;
      file = line.substr(quote + 6, end - quote - 6);
      number = line.substr(end + 8, in - end - 8);
      function = line.substr(in + 4);
    } else {
      size_t open = line.rfind('('), colon = line.rfind(':');
      if (open == std::string_view::npos || colon == std::string_view::npos || colon < open || line.back() != ')') continue;
      function = base::trim(line.substr(0, open));
      file = line.substr(open + 1, colon - open - 1);
      number = line.substr(colon + 1, line.size() - colon - 2);
    }
    if (function.empty() || !base::parse_int(number, 0, INT64_MAX).ok()) continue;
    std::string place = place_words(file, number, function);
    if (fallback.empty()) fallback = place;
    if (best.empty() && !is_library(file)) best = place;
  }
  return best.empty() ? fallback : best;
}

}  // namespace phalanx::diagnosis
