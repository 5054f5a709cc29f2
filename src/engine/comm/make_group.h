// Groups made over a store. join() makes one from the launcher's environment; tests make it over a store in memory, one rank a thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "engine/comm/compat.h"
#include "engine/comm/group.h"

namespace phalanx::engine::comm {

class FlightRing;

// `store` is where the ranks meet. `hosting`: this rank serves it and so has to leave last. `borrowed`: it belongs to the group that this
// one was split off, and outlives it.
struct StoreHandle {
  c10::intrusive_ptr<c10d::Store> store;
  bool hosting = false;
  bool borrowed = false;
};

struct GroupOptions {
  // As in torch's own default: long enough for one rank to write a checkpoint while the others wait. Finding a hang sooner is the
  // launcher's work.
  std::chrono::milliseconds timeout = std::chrono::minutes{30};
  bool shared_memory = true;           // between ranks of one host; must be the same for all, else none has it
  bool check = false;                  // labels must be equal too, and over Gloo calls are compared before they begin
  std::string instead_of;              // for describe(): why this group is not a faster one
  std::shared_ptr<FlightRing> flight;  // where operations are recorded; may be none
  std::string name = "world";          // of the group in there
  std::vector<int> ranks;              // the group's, in the run; empty: all of it
};

// How a rank takes part.
struct Place {
  int rank = 0;
  int world = 1;
  at::Device device = at::kCPU;
  std::string address;     // where Gloo listens; "": the address of the host's name
  std::string interfaces;  // when not empty, wins over the address
  std::string host{};      // ranks with the same one can share memory; "": found out
};

// Throws when the ranks cannot connect, and where the build cannot serve the device.
std::unique_ptr<Group> make_group(StoreHandle store, const Place& place, const GroupOptions& options);

// A world of one rank: every operation is done when it has started.
std::unique_ptr<Group> make_single_rank(at::Device device);

}  // namespace phalanx::engine::comm
