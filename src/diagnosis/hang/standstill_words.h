// What is said of what stands still. Ranks are numbers in the job; `operation` is "all_reduce 3 of dp", "send → rank 5 of pp".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/hang/records.h"

namespace phalanx::diagnosis {

// "all_reduce 3", "send → rank 5"; in a group, or in the communicator `within`. Empty: its name is not known.
std::string operation_of(const Operation& operation);
doctor::Words operation_in(const Operation& operation, const std::string& group, const std::string& within);

// Each sets kind, code and evidence of a verdict whose group and waiting ranks are known.
void say_not_joined(Standstill& v, const doctor::Words& operation, const doctor::Words& who, const doctor::Words& waiting,
                    int waiting_count, int culprits_count, const RankRecord& first);
void say_mismatch(Standstill& v, bool counted, const doctor::Words& camps, const std::string& within);
void say_parts_differ(Standstill& v, std::string_view sides);
void say_sums_differ(Standstill& v, const doctor::Words& operation, int64_t in, int64_t out);
void say_undecided(Standstill& v, const doctor::Words& operation, const doctor::Words& waiting, Source source);
void say_together(Standstill& v, const doctor::Words& operation, const std::vector<int>& scheduled);

struct CircleStep {
  int rank = 0, next = 0;
  doctor::Words operation;
};
void say_circle(Standstill& v, const std::vector<CircleStep>& steps);

// What limits a verdict.
void note_few(Standstill& v, const doctor::Words& waiting, int count);  // more have not come than have
void note_missing(Standstill& v);
void note_overwritten(Standstill& v, const std::vector<int>& ranks);
void note_cut(Standstill& v, const std::vector<int>& ranks);

}  // namespace phalanx::diagnosis
