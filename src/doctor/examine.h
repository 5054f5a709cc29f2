// From a situation to what is worth telling: every row asked, equals folded, the gravest first.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "doctor/catalogue.h"

namespace phalanx::doctor {

struct Examination {
  std::vector<Finding> findings;            // errors first, then by group and code; hosts that share code and evidence are one finding
  int errors = 0, warnings = 0, notes = 0;  // without the accepted ones
  int accepted = 0;                         // of any severity
};

// only: codes or prefixes ("NET-"); empty: all.
Examination examine(const Situation& situation, const std::vector<std::string>& only = {});

// Of the findings that are not accepted.
void count_again(Examination& examination);

// Hosts by what `key` says of them, the most common answer first; hosts for which it says nothing are left out.
// The odd ones out are all groups but the first.
struct Camp {
  std::string value;
  std::vector<size_t> hosts;
};
std::vector<Camp> camps(const Situation& situation, const std::function<std::optional<std::string>(const HostView&)>& key);

}  // namespace phalanx::doctor
