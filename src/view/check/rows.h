// The rows of the table of `phalanx check`: what is compared between hosts, and how it reads. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/language.h"
#include "doctor/situation.h"

namespace phalanx::view {

struct CheckRow {
  std::string label;  // empty: goes on under the row before
  // Per host of the situation. Hosts with equal keys are alike, whatever belongs to each alone (its address, its clock). Empty: not
  // known of this host.
  std::vector<std::string> keys;
  // What the cell of these hosts says; they have equal keys, which is not empty.
  std::function<std::string(const std::vector<size_t>& hosts)> text;
};

// Of the hosts that were probed. Rows of which nothing is known are left out. The situation must outlive the rows.
std::vector<CheckRow> check_rows(const doctor::Situation& situation, base::Language language);

// What the mesh test found, in one or more sentences; empty: no links.
std::string links_text(const doctor::Situation& situation, base::Language language);

}  // namespace phalanx::view
