// What the processes of ranks do at one moment, seen from outside: nothing of theirs is stopped, entered or changed. Plain data with its
// JSON (base/json_fields.h); diagnosis/hang/hang.h judges it. Empty or 0 means "not found out".
//
// Sources: proc(5) (stat, status, wchan, syscall, maps), sock_diag(7), cgroups(7). wchan, syscall and the memory of a process need the
// rights of ptrace(2) over it: the same user is enough.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "machine/gpu/facts.h"
#include "machine/python/frames.h"
#include "os/clock.h"

namespace phalanx::machine {

struct ThreadSample {
  int64_t tid = 0;
  std::string name;   // comm
  std::string state;  // "R", "S", "D", "T", "t", "Z"
  std::string wchan;  // kernel function it sleeps in: "futex_do_wait"; empty: it runs, or the kernel does not say
  int64_t syscall = -1;
  std::string waits_on;  // "file /data/x", "pipe to 812 (python3)", "10.0.0.2:443"; empty: no descriptor, or not told
  int64_t cpu_ms = 0;    // user and system, since it began
  // Return addresses found on its stack, innermost first: "libgloo.so.0!gloo::barrier". A scan, not an unwinding: a frame can be stale.
  std::vector<std::string> frames;
  std::vector<PythonFrame> python;  // its Python functions, innermost first; empty: none, or not found out
};
template <typename V>
void fields(V& v, ThreadSample& f) {
  v("tid", f.tid);
  v("name", f.name);
  v("state", f.state);
  v("wchan", f.wchan);
  v("syscall", f.syscall);
  v("waits_on", f.waits_on);
  v("cpu_ms", f.cpu_ms);
  v("frames", f.frames);
  v("python", f.python);
}

struct ProcessSample {
  int64_t pid = 0, parent = 0;
  std::string name, state;
  int64_t cpu_ms = 0, major_faults = 0;  // since it began
  int64_t rss_kb = 0, swap_kb = 0;
  int64_t tracer = 0;  // pid of the debugger; 0: none
  std::string tracer_name;
  std::vector<ThreadSample> threads;  // the main thread first; at most 64
  std::string python;                 // "3.11"; empty: no Python, or it was not looked for
  std::string python_problem;         // why its Python stacks, or some of them, cannot be told
};
template <typename V>
void fields(V& v, ProcessSample& f) {
  v("pid", f.pid);
  v("parent", f.parent);
  v("name", f.name);
  v("state", f.state);
  v("cpu_ms", f.cpu_ms);
  v("major_faults", f.major_faults);
  v("rss_kb", f.rss_kb);
  v("swap_kb", f.swap_kb);
  v("tracer", f.tracer);
  v("tracer_name", f.tracer_name);
  v("threads", f.threads);
  v("python", f.python);
  v("python_problem", f.python_problem);
}

// A TCP socket that a process of the rank holds (struct tcp_info, struct inet_diag_msg).
struct SocketSample {
  int64_t pid = 0;
  std::string local, local_address, remote, remote_address;  // "10.0.0.1:29500" and "10.0.0.1"; a mapped IPv4 address as IPv4
  std::string state;                                         // "ESTABLISHED", "SYN_SENT", …
  std::string timer;                                         // "", "on" (retransmission), "keepalive", "timewait", "persist" (zero window)
  int64_t receive_queue = 0, send_queue = 0;                 // bytes
  int64_t retransmits = 0, backoff = 0, unacked = 0, lost = 0, total_retransmits = 0;
  int64_t bytes_acked = 0, bytes_received = 0, rtt_us = 0;
  int64_t last_sent_ms = 0, last_received_ms = 0;  // ago; only data
  int64_t segment_bytes = 0;                       // snd_mss
  std::string answers;  // where data is not acknowledged: "yes", the host answers to a small packet; "no", nothing; "": not tried
};
template <typename V>
void fields(V& v, SocketSample& f) {
  v("pid", f.pid);
  v("local", f.local);
  v("local_address", f.local_address);
  v("remote", f.remote);
  v("remote_address", f.remote_address);
  v("state", f.state);
  v("timer", f.timer);
  v("receive_queue", f.receive_queue);
  v("send_queue", f.send_queue);
  v("retransmits", f.retransmits);
  v("backoff", f.backoff);
  v("unacked", f.unacked);
  v("lost", f.lost);
  v("total_retransmits", f.total_retransmits);
  v("bytes_acked", f.bytes_acked);
  v("bytes_received", f.bytes_received);
  v("rtt_us", f.rtt_us);
  v("last_sent_ms", f.last_sent_ms);
  v("last_received_ms", f.last_received_ms);
  v("segment_bytes", f.segment_bytes);
  v("answers", f.answers);
}

// The control groups the rank's first process is in.
struct GroupSample {
  bool frozen = false;
  std::string frozen_by;  // the folder
  int64_t throttled_ms = 0, throttled_periods = 0, periods = 0;
  double cpus = 0;  // quota / period of the tightest group; 0: no limit
};
template <typename V>
void fields(V& v, GroupSample& f) {
  v("frozen", f.frozen);
  v("frozen_by", f.frozen_by);
  v("throttled_ms", f.throttled_ms);
  v("throttled_periods", f.throttled_periods);
  v("periods", f.periods);
  v("cpus", f.cpus);
}

struct RankSample {
  int64_t rank = 0, pid = 0;
  int64_t silent_ms = 0;                 // since its last output or progress event
  std::vector<ProcessSample> processes;  // the rank's own first; at most 64
  std::vector<SocketSample> sockets;     // at most 1024; listening ones are left out
  GroupSample group;
};
template <typename V>
void fields(V& v, RankSample& f) {
  v("rank", f.rank);
  v("pid", f.pid);
  v("silent_ms", f.silent_ms);
  v("processes", f.processes);
  v("sockets", f.sockets);
  v("group", f.group);
}

// The first thread of the process that trains, looked at many times (machine/ranks/profile.h).
struct OftenSeen {
  int64_t times = 0;
  ThreadSample thread;
};
template <typename V>
void fields(V& v, OftenSeen& f) {
  v("times", f.times);
  v("thread", f.thread);
}
struct RankProfile {
  int64_t rank = 0, looks = 0;
  std::vector<OftenSeen> seen;  // at most 48: the sum of their times may be less than looks
};
template <typename V>
void fields(V& v, RankProfile& f) {
  v("rank", f.rank);
  v("looks", f.looks);
  v("seen", f.seen);
}

struct HostSample {
  int64_t at_ms = 0;  // monotonic clock of the host
  std::vector<RankSample> ranks;
  std::vector<RankProfile> profiles;  // if asked for
  std::vector<Gpu> gpus;              // if asked for, and there is a driver that answers
};
template <typename V>
void fields(V& v, HostSample& f) {
  v("at_ms", f.at_ms);
  v("ranks", f.ranks);
  v("profiles", f.profiles);
  v("gpus", f.gpus);
}

struct RankProcess {
  int64_t rank = 0;
  pid_t pid = 0;
  int64_t silent_ms = 0;
};
// Looks at them all, within `budget` as far as it can be kept: a look into a process that hangs in the kernel may itself hang, so run it
// in a child (agent/looks/forked_look.h). frames: read stacks too. gpus: ask NVML too. opened: memory that the caller of the child opened.
HostSample sample_ranks(const std::vector<RankProcess>& ranks, bool frames, bool gpus, os::milliseconds budget,
                        const OpenedMemories& opened = {});

}  // namespace phalanx::machine
