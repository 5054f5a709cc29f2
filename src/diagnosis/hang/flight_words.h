// What is said of an end of the flight recorder's comparison. Ranks are numbers in the job; `operation` is "all_reduce 3", "send → rank 5".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/hang/flight_recorder.h"

namespace phalanx::diagnosis {

std::string operation_of(const TraceEntry& entry);

// Each sets kind, code and evidence of a verdict whose group and waiting ranks are known.
void say_not_joined(FlightVerdict& v, std::string_view operation, const TraceEntry* last);  // last: of the first culprit; null: none
void say_mismatch(FlightVerdict& v, std::string_view camps);
void say_parts_differ(FlightVerdict& v, std::string_view sides);
void say_sums_differ(FlightVerdict& v, std::string_view operation, int64_t in, int64_t out);
void say_undecided(FlightVerdict& v, std::string_view operation);
void say_together(FlightVerdict& v, std::string_view operation, const std::vector<int>& scheduled);

struct CircleStep {
  int rank = 0, next = 0;
  std::string operation, group;
};
void say_circle(FlightVerdict& v, const std::vector<CircleStep>& steps);

// What limits a verdict.
void note_missing(FlightVerdict& v);
void note_overwritten(FlightVerdict& v, const std::vector<int>& ranks);
void note_cut(FlightVerdict& v, const std::vector<int>& ranks);

}  // namespace phalanx::diagnosis
