// Everything a check may look at: facts of every host, what the hosts found between them, and the job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hosts/mesh.h"
#include "machine/facts.h"
#include "wire/job_spec.h"

namespace phalanx::doctor {

struct HostView {
  std::string name;     // as in the host list
  bool probed = false;  // facts are there; a host that did not answer has none, and a finding of its own
  std::string error;    // why not
  machine::Facts facts;
  std::optional<int64_t> clock_offset_ns;  // its wall clock less ours, by the sample with the least round trip
  int64_t clock_error_ns = 0;              // half of that round trip
  int ranks = 0;                           // planned here; 0: not planned yet
  std::string address;                     // chosen for it (job/choose/choose.h); empty: none yet
  std::string interface;
  bool reached = true;  // it was asked; else its login or agent failed, and that is told apart from the findings
};

struct JobView : wire::JobSpec {
  int world = 0;
  bool serves_store = true;        // ours; else rank 0 serves it
  std::string master_address;      // asked for by the user; empty: chosen
  int master_port = 0;             // 0: chosen
  std::string port_run;            // the user's own run that has its store on that port of the first host; empty: none is known
  bool wants_gpus = false;         // a GPU was asked for, or is the default because hosts have some
  int64_t hosts_asked_gpus = 0;    // --gpus N
  std::vector<std::string> unset;  // "phalanx.yaml:7:3: API_KEY": variables of the project file that have no value
};

struct Situation {
  std::vector<HostView> hosts;
  hosts::Mesh mesh;
  JobView job;

  bool single() const { return hosts.size() == 1; }
  // What the program would see for `name` on that host: the user's own setting first, else the host's environment.
  std::optional<std::string> variable(size_t host, const std::string& name) const;
};

}  // namespace phalanx::doctor
