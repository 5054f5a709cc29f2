// The hosts of a job, in rank order, from what a user writes: -H, a hostfile (DeepSpeed, Open MPI, bare names), a Slurm
// node list. Grammar and limits: docs/formats/hostfile.md. All parsing is pure; only read_hostfile touches the world.
//
// A line that is not understood is an error with its place and what to write instead. Nothing is guessed and nothing is
// dropped: DeepSpeed reads "slots=4abc" as 4 and a missing file as "this machine"; here both are refused.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace phalanx::hosts {

constexpr size_t kLargestHostfile = 4u << 20;   // bytes
constexpr size_t kLongestHostLine = 64u << 10;  // bytes
constexpr size_t kMostHosts = 65'536;
constexpr int kMostSlots = 4'096;  // on one host

struct HostSpec {
  std::string name;           // how the host is called in all speech; unique in its list
  std::string user;           // empty: ssh's choice
  std::string address;        // what ssh is given: a name, an alias of the ssh configuration, an IP address (no brackets)
  int port = 0;               // 0: ssh's choice
  std::optional<int> slots;   // as written; none until the host is probed
  std::vector<int> selected;  // slot ids chosen by a filter, ascending; empty: all of them …
  std::vector<int> left_out;  // … but these; set only while `slots` is not known (host_filter.h, used_slots)
  std::string source;         // where it was written: "hosts.txt:3", "-H"

  std::string destination() const { return user.empty() ? address : user + "@" + address; }
};

using HostList = std::vector<HostSpec>;

// "gpu01,gpu02:4,user@gpu[03-05]:8,[fd00::1]:2". Errors: kUsage. `flag` is the flag as the user knows it, for speech.
base::Result<HostList> parse_host_argument(std::string_view text, std::string_view flag = "-H");

// Text of a hostfile; `path` names it in errors ("hosts.txt:3:9: …") and sources. Errors: kConfig.
base::Result<HostList> parse_hostfile(std::string_view text, std::string_view path);

// The file itself. A file that is missing, unreadable, too large or without a host is an error: kConfig.
base::Result<HostList> read_hostfile(const std::string& path);

// SLURM_JOB_NODELIST: names and ranges, nothing else. Errors: kConfig; `source` names the variable.
base::Result<HostList> parse_node_list(std::string_view text, std::string_view source);

}  // namespace phalanx::hosts
