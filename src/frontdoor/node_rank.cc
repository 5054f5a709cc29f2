// The number that a line gives its machine: the same line stands on every machine, each with its own.
#include <fmt/format.h>

#include "base/try.h"
#include "frontdoor/door.h"

namespace phalanx::frontdoor {

using words::tr;

base::Status take_node_rank(Door& door, const GivenFlag& given) {
  if (given.known && !given.value.empty() && given.value != "-1") {
    TRY_ASSIGN(int number, number_of(given, 0, 65'535));
    door.out.line_rank = LineRank{number, door.out.decisions.size()};
  }
  door.decide(typed_text(given), "", tr("Phalanx numbers the hosts itself"));
  return base::ok();
}

void settle_node_rank(Translation& t, bool hosts_named) {
  if (!t.line_rank || t.nodes.value_or(1) < 2) return;
  Decision& decision = t.decisions.at(t.line_rank->decision);
  if (hosts_named) {
    if (t.line_rank->number > 0)
      t.findings.push_back({tr("{} has no effect: the hosts are named, and Phalanx numbers them itself", decision.from),
                            tr("start the line once, on one machine")});
    return;
  }
  if (t.least_nodes || t.master_address.empty()) return;
  t.node_rank = t.line_rank->number;
  decision.to = fmt::format("--node-rank {}", *t.node_rank);
  decision.why = tr("no hosts are named: the line is started on each of {} machines, and they meet at {}", *t.nodes, t.master_address);
}

}  // namespace phalanx::frontdoor
