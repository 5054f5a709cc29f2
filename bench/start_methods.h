// Every way to start one rank on each of N hosts that the start-up bench compares: how it is typed, and what it needs around it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "start_trial.h"

namespace phalanx::bench {

// What a method is held against: the floor of its group is the plainest thing that could be typed.
enum class Group { kCold, kWarm, kLocal };

struct Method {
  std::string name;
  Group group;
  bool floor = false;
  int most_hosts = 1 << 20;
  std::function<Launch(int hosts)> launch;
  std::function<base::Status(int hosts)> before = nullptr;  // each trial
  std::function<base::Status(int hosts)> after = nullptr;   // each trial
  std::function<base::Status(int hosts)> open = nullptr;    // once per number of hosts
  std::function<base::Status(int hosts)> close = nullptr;
};

struct Setting {
  std::string phalanx;  // absolute paths, the same on every host
  std::string rank;
  std::string folder;  // short, for sockets; ours alone
};

// In the order in which they are shown. Peers that are not installed are left out, with a word on stderr.
std::vector<Method> methods(const Setting& setting);

}  // namespace phalanx::bench
