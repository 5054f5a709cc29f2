#include "diagnosis/hang/standstill_words.h"

#include <fmt/format.h>

#include "base/text.h"
#include "diagnosis/hang/rank_words.h"

namespace phalanx::diagnosis {
namespace {

using doctor::Words;
using Kind = Standstill::Kind;
using words::tr;

// "it" of one rank, else the rank that is told of.
Words subject_of(const RankRecord& first, int count) {
  if (count == 1) return tr("it##the rank");
  return first.rank >= 0 ? tr("rank {}##subject", first.rank) : tr("each##of the ranks");
}

}  // namespace

std::string operation_of(const Operation& operation) {
  constexpr size_t kMostSaid = 4;
  const std::vector<Transfer>& parts = operation.parts;
  if (parts.empty()) return operation.sequence > 0 ? fmt::format("{} {}", operation.name, operation.sequence) : operation.name;
  std::string text;
  for (size_t i = 0; i < parts.size() && i < kMostSaid; ++i)
    text += fmt::format("{}{} rank {}", i ? " + " : "", parts[i].send ? "send →" : "recv ←",
                        parts[i].peer < 0 ? "?" : std::to_string(parts[i].peer));
  return parts.size() > kMostSaid ? fmt::format("{} + … ({})", text, parts.size()) : text;
}

Words operation_in(const Operation& operation, const std::string& group, const std::string& within) {
  const std::string name = operation_of(operation);
  if (name.empty()) return {};
  if (!within.empty()) return tr("{} of communicator {}", name, within);
  return group.empty() ? tr("{}##operation", name) : tr("{} of {}##operation", name, group);
}

void say_not_joined(Standstill& v, const Words& operation, const Words& who, const Words& waiting, int waiting_count, int culprits_count,
                    const RankRecord& first) {
  v.kind = Kind::kNotJoined;
  Words does;
  if (!first.instead.empty() || first.entries.empty()) {
    does =
        tr("{} {}##what it does", subject_of(first, culprits_count), first.instead.empty() ? tr("recorded no operation") : first.instead);
  } else {
    const Operation& last = first.entries.back();
    v.where = last.where;
    does = tr("the last operation of rank {} was {}{}", first.rank, operation_of(last), v.where.empty() ? "" : ", " + v.where);
  }
  const std::string_view waits = waiting_count == 1 ? "waits" : "wait";
  if (operation.empty()) v.evidence = tr("{} never entered the collective in which {} {}; {}", who, waiting, waits, does);
  else v.evidence = tr("{} never entered {}, in which {} {}; {}", who, operation, waiting, waits, does);
}

void say_mismatch(Standstill& v, bool counted, const Words& camps, const std::string& within) {
  v.kind = Kind::kMismatch;
  v.code = "HANG-MISMATCH";
  const std::string at = v.where.empty() ? "" : fmt::format(" ({})", v.where);
  if (counted) v.evidence = tr("the ranks have called different numbers of collectives: {}{}", camps, at);
  else if (!within.empty()) v.evidence = tr("ranks of communicator {} launched different operations: {}{}", within, camps, at);
  else if (v.sequence > 0 && v.group.empty()) v.evidence = tr("collective {} differs between the ranks: {}{}", v.sequence, camps, at);
  else if (v.sequence > 0) v.evidence = tr("collective {} of {} differs between the ranks: {}{}", v.sequence, v.group, camps, at);
  else v.evidence = tr("the ranks wait in different collectives: {}{}", camps, at);
}

void say_parts_differ(Standstill& v, std::string_view sides) {
  v.kind = Kind::kMismatch;
  v.code = "HANG-MISMATCH";
  v.evidence = tr("a send and its receive in {} differ in size or type: {}", v.group, sides);
}

void say_sums_differ(Standstill& v, const Words& operation, int64_t in, int64_t out) {
  v.kind = Kind::kMismatch;
  v.code = "HANG-MISMATCH";
  v.evidence = tr("{} sends {} elements and receives {}: the split sizes of the ranks do not match", operation, in, out);
}

void say_undecided(Standstill& v, const Words& operation, const Words& waiting, Source source) {
  v.kind = Kind::kUndecided;
  v.evidence = tr("{} {} in {}", waiting, v.waiting.size() == 1 ? "waits" : "wait", operation);
  if (v.unknown.empty()) return;
  const Words missing = name_ranks(v.unknown);
  if (source == Source::kWatchdog) v.evidence += tr("; the logs of {} are missing, and the cause is probably in them", missing);
  else v.evidence += tr("; {} {} no dump: exited, or stuck where no dump can be written", missing, of_ranks(v.unknown, "has", "have"));
}

void say_together(Standstill& v, const Words& operation, const std::vector<int>& scheduled) {
  v.kind = Kind::kTogether;
  v.code = "HANG-TRANSPORT";
  const bool blocked = !scheduled.empty() && scheduled.size() < v.waiting.size();
  const Words why = blocked ? tr("earlier work blocks the stream of {}", name_ranks(scheduled)) : tr("the network or a GPU");
  v.evidence = tr("all ranks entered {}, but it has not completed: {}", operation, why);
}

void say_circle(Standstill& v, const std::vector<CircleStep>& steps) {
  constexpr size_t kMostSaid = 8;
  v.kind = Kind::kCircular;
  v.code = "HANG-CIRCULAR";
  for (size_t i = 0; i < steps.size() && i < kMostSaid; ++i)
    v.evidence.add(tr(", ##of clauses"), tr("rank {} waits in {} for rank {}", steps[i].rank, steps[i].operation, steps[i].next));
  if (steps.size() > kMostSaid) v.evidence += tr(", and so on over {} ranks", steps.size());
}

void note_few(Standstill& v, const Words& waiting, int count) {
  v.notes.push_back(tr("most ranks have not entered it: perhaps only {} {} it, for example under 'if rank == 0'", waiting,
                       count == 1 ? "calls" : "call"));
}

void note_missing(Standstill& v) { v.notes.push_back(tr("no dump of {}: exited, or unable to write one", name_ranks(v.unknown))); }

void note_overwritten(Standstill& v, const std::vector<int>& ranks) {
  v.notes.push_back(
      tr("the ring buffer of {} has overwritten its oldest entries; earlier operations are assumed to be "
         "completed. To enlarge the buffer, set TORCH_FR_BUFFER_SIZE (TORCH_NCCL_TRACE_BUFFER_SIZE)",
         name_ranks(ranks)));
}

void note_cut(Standstill& v, const std::vector<int>& ranks) {
  v.notes.push_back(tr("the dump of {} has too many entries; only a part was read", name_ranks(ranks)));
}

}  // namespace phalanx::diagnosis
