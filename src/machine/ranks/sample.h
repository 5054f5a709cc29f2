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
PHALANX_FIELDS(ThreadSample, tid, name, state, wchan, syscall, waits_on, cpu_ms, frames, python);

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
PHALANX_FIELDS(ProcessSample, pid, parent, name, state, cpu_ms, major_faults, rss_kb, swap_kb, tracer, tracer_name, threads, python,
               python_problem);

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
PHALANX_FIELDS(SocketSample, pid, local, local_address, remote, remote_address, state, timer, receive_queue, send_queue, retransmits,
               backoff, unacked, lost, total_retransmits, bytes_acked, bytes_received, rtt_us, last_sent_ms, last_received_ms,
               segment_bytes, answers);

// The control groups the rank's first process is in.
struct GroupSample {
  bool frozen = false;
  std::string frozen_by;  // the folder
  int64_t throttled_ms = 0, throttled_periods = 0, periods = 0;
  double cpus = 0;  // quota / period of the tightest group; 0: no limit
};
PHALANX_FIELDS(GroupSample, frozen, frozen_by, throttled_ms, throttled_periods, periods, cpus);

struct RankSample {
  int64_t rank = 0, pid = 0;
  int64_t silent_ms = 0;                 // since its last output or progress event
  std::vector<ProcessSample> processes;  // the rank's own first; at most 64
  std::vector<SocketSample> sockets;     // at most 1024; listening ones are left out
  GroupSample group;
};
PHALANX_FIELDS(RankSample, rank, pid, silent_ms, processes, sockets, group);

// The first thread of the process that trains, looked at many times (machine/ranks/profile.h).
struct OftenSeen {
  int64_t times = 0;
  ThreadSample thread;
};
PHALANX_FIELDS(OftenSeen, times, thread);
struct RankProfile {
  int64_t rank = 0, looks = 0;
  std::vector<OftenSeen> seen;  // at most 48: the sum of their times may be less than looks
};
PHALANX_FIELDS(RankProfile, rank, looks, seen);

struct HostSample {
  int64_t at_ms = 0;  // monotonic clock of the host
  std::vector<RankSample> ranks;
  std::vector<RankProfile> profiles;  // if asked for
  std::vector<Gpu> gpus;              // if asked for, and there is a driver that answers
};
PHALANX_FIELDS(HostSample, at_ms, ranks, profiles, gpus);

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
