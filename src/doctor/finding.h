// What a check has found: a row of the catalogue, the hosts it holds for, and the evidence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "words/message.h"

namespace phalanx::doctor {

enum class Severity { kError, kWarning, kNote };  // error: the job will fail or hang. warning: it may, or is slow. note: good to know

using Words = words::Message;
using words::tr;

struct Row;

struct Finding {
  const Row* row = nullptr;
  std::vector<size_t> hosts;  // positions in the situation; empty: the job as a whole (its files, its words)
  Words evidence;             // what was seen, with values: "eth0 192.169.20.14/24; the others are in 192.168.20.0/24"
  std::string fix;            // one command that can be typed as printed; empty: the row's
  std::string where;          // host on which to type it; empty: here, or on each of the hosts
  bool accepted = false;      // by the user (doctor/accepted.h): listed, but no reason to refuse or to warn
};

}  // namespace phalanx::doctor
