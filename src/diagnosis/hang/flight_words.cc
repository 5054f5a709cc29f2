#include "diagnosis/hang/flight_words.h"

#include <fmt/format.h>

#include "base/text.h"
#include "diagnosis/hang/rank_words.h"

namespace phalanx::diagnosis {
namespace {

using Kind = FlightVerdict::Kind;
using words::tr;

}  // namespace

std::string operation_of(const TraceEntry& entry) {
  constexpr size_t kMostSaid = 4;
  if (entry.parts.empty()) return fmt::format("{} {}", entry.name, entry.sequence);
  std::string text;
  for (size_t i = 0; i < entry.parts.size() && i < kMostSaid; ++i) {
    const TracePart& part = entry.parts[i];
    text += fmt::format("{}{} rank {}", i ? " + " : "", part.send ? "send →" : "recv ←", part.peer < 0 ? "?" : std::to_string(part.peer));
  }
  return entry.parts.size() > kMostSaid ? fmt::format("{} + … ({})", text, entry.parts.size()) : text;
}

void say_not_joined(FlightVerdict& v, std::string_view operation, const TraceEntry* last) {
  v.kind = Kind::kNotJoined;
  v.code = "HANG-NEVER-ENTERED";
  words::Message text = tr("it recorded no operation");
  if (last) {
    v.where = last->where;
    std::string at = v.where.empty() ? "" : ", " + v.where;
    text = tr("the last operation of rank {} was {}{}", v.culprits[0], operation_of(*last), at);
  }
  v.evidence = tr("{} never entered {} of {}, in which {} {}; {}", name_ranks(v.culprits), operation, v.group, name_ranks(v.waiting),
                  of_ranks(v.waiting, "waits", "wait"), text);
}

void say_mismatch(FlightVerdict& v, std::string_view camps) {
  v.kind = Kind::kMismatch;
  v.code = "HANG-MISMATCH";
  std::string at = v.where.empty() ? "" : fmt::format(" ({})", v.where);
  v.evidence = tr("collective {} of {} differs between the ranks: {}{}", v.sequence, v.group, camps, at);
}

void say_parts_differ(FlightVerdict& v, std::string_view sides) {
  v.kind = Kind::kMismatch;
  v.code = "HANG-MISMATCH";
  v.evidence = tr("a send and its receive in {} differ in size or type: {}", v.group, sides);
}

void say_sums_differ(FlightVerdict& v, std::string_view operation, int64_t in, int64_t out) {
  v.kind = Kind::kMismatch;
  v.code = "HANG-MISMATCH";
  v.evidence = tr("{} of {} sends {} elements and receives {}: the split sizes of the ranks do not match", operation, v.group, in, out);
}

void say_undecided(FlightVerdict& v, std::string_view operation) {
  v.kind = Kind::kUndecided;
  v.evidence =
      tr("{} {} in {} of {}; {} {} no dump: exited, or stuck where no dump can be written", name_ranks(v.waiting),
         of_ranks(v.waiting, "waits", "wait"), operation, v.group, name_ranks(v.without_dump), of_ranks(v.without_dump, "has", "have"));
}

void say_together(FlightVerdict& v, std::string_view operation, const std::vector<int>& scheduled) {
  v.kind = Kind::kTogether;
  v.code = "HANG-TRANSPORT";
  bool blocked = !scheduled.empty() && scheduled.size() < v.waiting.size();
  words::Message why = blocked ? tr("earlier work blocks the stream of {}", name_ranks(scheduled)) : tr("the network or a GPU");
  v.evidence = tr("all ranks entered {} of {}, but it has not completed: {}", operation, v.group, why);
}

void say_circle(FlightVerdict& v, const std::vector<CircleStep>& steps) {
  constexpr size_t kMostSaid = 8;
  v.kind = Kind::kCircular;
  v.code = "HANG-CIRCULAR";
  for (size_t i = 0; i < steps.size() && i < kMostSaid; ++i) {
    const CircleStep& s = steps[i];
    v.evidence.add(tr(", ##of clauses"), tr("rank {} waits in {} of {} for rank {}", s.rank, s.operation, s.group, s.next));
  }
  if (steps.size() > kMostSaid) v.evidence += tr(", and so on over {} ranks", steps.size());
}

void note_missing(FlightVerdict& v) { v.notes.push_back(tr("no dump of {}: exited, or unable to write one", name_ranks(v.without_dump))); }

void note_overwritten(FlightVerdict& v, const std::vector<int>& ranks) {
  v.notes.push_back(
      tr("the ring buffer of {} has overwritten its oldest entries; earlier operations are assumed to be "
         "completed. To enlarge the buffer, set TORCH_FR_BUFFER_SIZE (TORCH_NCCL_TRACE_BUFFER_SIZE)",
         name_ranks(ranks)));
}

void note_cut(FlightVerdict& v, const std::vector<int>& ranks) {
  v.notes.push_back(tr("the dump of {} has too many entries; only a part was read", name_ranks(ranks)));
}

}  // namespace phalanx::diagnosis
