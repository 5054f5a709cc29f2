// What a command line of another launcher means here: a job in the terms of `phalanx run`, with every decision and its reason. Made by
// translate (frontdoor.h).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "words/message.h"

namespace phalanx::frontdoor {

// One thing that was typed, found in a file or assumed, and what it becomes. `to` is empty where nothing comes of it.
struct Decision {
  std::string from;  // "--nproc_per_node 2", "hosts.txt:3"
  std::string to;    // "--nproc-per-node 2"
  words::Message why;
};

// A trap: the line would do something else than it looks like, under its own launcher or here.
struct Finding {
  words::Message text;
  words::Message advice;  // may be empty
};

struct Host {
  std::string name;
  int slots = 0;
  std::vector<int> selected = {};  // slot ids, ascending; empty: all
};

// The number of this machine, where the line has one, as the lines do that are started on every machine.
struct LineRank {
  int number = 0;
  size_t decision = 0;  // what becomes of it is said there
};

struct Translation {
  std::string peer;  // "torchrun", as the user calls it

  // The job. What is empty or none is left to phalanx run.
  std::vector<Host> hosts;
  std::string hostfile;            // Open MPI's; at most one of both
  std::optional<int> nodes;        // of MIN:MAX the MAX
  std::optional<int> least_nodes;  // the MIN
  std::string ranks;               // "8", "gpu", "cpu", "auto": per node
  std::string master_address;
  std::optional<int> master_port;
  std::optional<LineRank> line_rank;
  std::optional<int> node_rank;  // started by hand on every machine; set by settle_node_rank
  std::optional<int> restarts;
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> environment_files;
  std::vector<std::string> argv;
  bool local_rank_macro = false;  // ${local_rank} in argv stands for the rank's number on its host
  bool no_store = false;
  bool quiet = false;
  std::string log_folder;
  bool split_logs = false;
  std::string shown;                     // of --show; empty: everything
  std::vector<std::string> ssh_options;  // "Port=2222"

  std::vector<Decision> decisions;
  std::vector<Finding> findings;
};

// Whether the number of the line counts. With named hosts it does not: Phalanx starts the line once and numbers the hosts itself. Without
// them the line starts this machine's part, if it says how many nodes there are and where they meet; otherwise the number is of no use.
void settle_node_rank(Translation& translation, bool hosts_named);

// The options of `phalanx run` for it, without the command: {"-H", "a:2,b:2", "--nnodes", "2", …}.
std::vector<std::string> run_options_of(const Translation& translation);

}  // namespace phalanx::frontdoor
