// The operations of the launcher on its files, each as a program on a folder that was furnished with earlier runs, and what must hold
// afterwards, whatever system call has failed meanwhile.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "syscall_faults.h"

namespace phalanx::storage {

// A folder with an empty home directory, and `disk`, which holds the launcher's state and cache.
struct Place {
  std::string path;
  std::string disk() const { return path + "/disk"; }
  std::string runs() const { return disk() + "/state/phalanx/runs"; }
};

// What an operation has left.
struct Ended {
  Place place;
  int status = 0;  // of wait(2)
  std::string out, err;
  Fault fault;
  std::string fault_at;      // "" if none
  bool interrupted = false;  // the call hung, and with it the program, until it was sent SIGINT
};

struct Operation {
  std::string name;
  std::vector<std::string> words;  // after `phalanx`; @ stands for the place
  // "" or what is wrong.
  std::function<std::string(const Ended& ended, const Ended& plain)> check;
  // What runs beside it, unwatched: started before the operation. "" or why not.
  std::function<std::string(const Place& place)> before = nullptr;
  bool takes_seconds = false;
};

// Two runs that have ended, one done and one failed. "" or why not.
std::string furnish(const Place& place);
std::vector<Operation> operations();
Program program_of(const Operation& operation, const Place& place);
// What holds after every operation: the earlier runs are untouched, nothing temporary is left, and the next run, ps and report work.
std::string aftermath(const Ended& ended);

}  // namespace phalanx::storage
