// What is seen of a rank from outside, and what it says of what the ranks have asked of each other. Pure.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/hang/hang.h"

namespace phalanx::diagnosis {

struct Seen {
  const RankView* view;
  Activity activity;
  bool known() const { return activity.doing != Doing::kUnknown; }
  // Where it is in the user's program; what the program says itself goes before what was read from outside.
  std::string place() const {
    std::string said = place_in(view->stack);
    return said.empty() && view->then ? place_of(*view->then) : said;
  }
};

// Who waits in a collective or at the store, and what the others do instead; or only those who are certainly elsewhere.
std::vector<RankRecord> records_of(const std::vector<Seen>& seen, bool elsewhere);

// NCCL's RAS knows processes; those of this run become ranks. The same process id on several hosts is told apart by the address.
RasReport of_this_run(RasReport report, const std::vector<Seen>& seen, const std::vector<std::string>& hosts);

}  // namespace phalanx::diagnosis
