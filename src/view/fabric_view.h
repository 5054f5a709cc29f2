// What `phalanx bench fabric` shows: a matrix of bandwidth and latency, then the links that are slow or do not hold. Pure functions.
#pragma once

#include <string>

#include "base/json.h"
#include "base/language.h"
#include "doctor/situation.h"

namespace phalanx::view {

// A link is slow when it has less than half of the median bandwidth.
std::string fabric_text(const doctor::Situation& situation, base::Language language);
// {"schema": 1, "median_bytes_per_second": n, "links": [{from, to, outcome, bytes_per_second, round_trip_ns, retransmits, slow}]}
base::Json fabric_json(const doctor::Situation& situation);
bool fabric_holds(const doctor::Situation& situation);  // links were tried, and all of them were good

}  // namespace phalanx::view
