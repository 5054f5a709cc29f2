// Facts: what a probe saw of one machine. Plain data, no judgement: the doctor judges, job/ chooses. One struct per topic,
// each in a header of its own with the one list of its fields, from which JSON is written and read (base/json_fields.h;
// docs/formats/facts.md). Everything optional or empty means "not found out", never "no".
//
// Units: bytes, nanoseconds for durations unless the name says otherwise, Unix seconds for points in time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine/clock_facts.h"
#include "machine/command/facts.h"
#include "machine/gpu/facts.h"
#include "machine/infiniband/facts.h"
#include "machine/limits_facts.h"
#include "machine/network/facts.h"
#include "machine/outside.h"
#include "machine/ranks/process_facts.h"
#include "machine/software/facts.h"
#include "machine/storage/facts.h"

namespace phalanx::machine {

// A part of the probe that did not answer: killed at its deadline, died, or was refused.
struct Gap {
  std::string part;       // "storage", "storage:/data", "network:resolve gpu02"
  std::string why;        // "no answer for 1.2 s; in state D, waiting in fuse_get_req"
  bool doubtful = false;  // the machine was busy or slow; else it was seen to stand still, or died
};
PHALANX_FIELDS(Gap, part, why, doubtful);

struct Machine {
  std::string hostname;      // gethostname
  std::string boot_id;       // /proc/sys/kernel/random/boot_id
  std::string net_space;     // "net:[4026531840]": machines of one boot id in other spaces are containers with networks of their own
  std::string pid_space;     // "pid:[4026531836]"
  Outside outside;           // where the launcher started this agent in a container: its host
  std::string machine_id;    // /etc/machine-id
  std::string kernel;        // "6.1.0-18-amd64"
  std::string distribution;  // PRETTY_NAME of /etc/os-release
  std::string glibc;         // "2.36" of the libc.so.6 found, empty if none
  std::string architecture;  // uname -m
  std::string container;     // "docker", "podman", "kubernetes", "lxc", empty: none seen
  std::string user;
  int64_t uid = 0;
  int64_t cpus_online = 0;
  int64_t cpus_usable = 0;             // sched_getaffinity
  std::vector<std::string> numa_cpus;  // per NUMA node its cpulist, "0-31,64-95"
  int64_t memory_bytes = 0;
  int64_t memory_available_bytes = 0;
};
PHALANX_FIELDS(Machine, hostname, boot_id, net_space, pid_space, outside, machine_id, kernel, distribution, glibc, architecture, container,
               user, uid, cpus_online, cpus_usable, numa_cpus, memory_bytes, memory_available_bytes);

struct Facts {
  int64_t schema = 1;
  Machine machine;
  GpuFacts gpus;
  NetworkFacts network;
  InfinibandFacts infiniband;
  SoftwareFacts software;
  CommandFacts command;
  StorageFacts storage;
  LimitsFacts limits;
  ProcessFacts processes;
  ClockFacts clock;
  std::vector<Gap> gaps;
  int64_t probe_ns = 0;  // how long it all took
};
PHALANX_FIELDS(Facts, schema, machine, gpus, network, infiniband, software, command, storage, limits, processes, clock, gaps, probe_ns);

}  // namespace phalanx::machine
