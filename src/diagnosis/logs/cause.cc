#include "diagnosis/logs/cause.h"

#include <algorithm>

#include "base/text.h"
#include "base/unicode.h"
#include "diagnosis/logs/family.h"
#include "diagnosis/logs/known_message.h"

namespace phalanx::diagnosis {
namespace {

using words::tr;

// Of a hang the rank that complains is the one that noticed; the culprit is named only by a message that does so.
bool is_noticed_only(const LogEvent& event) {
  return (event.signature->code == "HANG-MISMATCH" || event.signature->code == "HANG-TIMEOUT") && !event.captures.count("rank");
}

LogCause cause_of(const LogEvent& event) {
  LogCause cause;
  cause.code = event.signature->code;
  if (is_noticed_only(event)) {
    if (event.rank >= 0) cause.detail = tr("reported by rank {}", event.rank);
    cause.evidence.push_back(evidence_of(event));
    return cause;
  }
  if (event.rank >= 0) cause.ranks = {event.rank};
  else cause.local_rank = event.local_rank;
  cause.host = event.host;
  if (event.traceback_line > 0) cause.evidence.push_back({event.file, event.traceback_line, "Traceback (most recent call last):"});
  cause.evidence.push_back(evidence_of(event));
  if (!event.where.empty()) cause.detail = tr("at {}", event.where);
  if (!is_plain(event)) return cause;
  if (doctor::Words family = family_of_module(event.module); !family.empty())
    cause.detail.add(tr("; "), tr("raised in {} ({})", family, base::printable(event.module, 120)));
  if (const codes::KnownMessage* known = known_message(event.text, event.module))
    cause.detail.add(tr("; "), tr("a message of {} ({})", family_of_message(*known), known->file));
  return cause;
}

// Further lines of the same code: more ranks, more evidence. Ranks are those that failed before anything else did.
void gather(const LogFacts& facts, LogCause& cause, const LogEvent& first) {
  for (const LogEvent& event : facts.events) {
    if (&event == &first || event.signature->code != cause.code || event.place < first.place) continue;
    if (event.rank >= 0 && !is_noticed_only(event) && std::find(cause.ranks.begin(), cause.ranks.end(), event.rank) == cause.ranks.end())
      cause.ranks.push_back(event.rank);
    if (cause.host.empty()) cause.host = event.host;
    else if (!event.host.empty() && event.host != cause.host) continue;
    if (cause.evidence.size() < kMostEvidence) cause.evidence.push_back(evidence_of(event));
  }
  std::sort(cause.ranks.begin(), cause.ranks.end());
}

// Without a rank in the line: the one whose end tells the same process id (the kernel's word on a killed process), or the one that
// torchrun's summary below says failed first.
void name_rank(const LogFacts& facts, LogCause& cause, const LogEvent& first) {
  if (is_noticed_only(first) || !cause.ranks.empty() || cause.local_rank >= 0) return;
  std::string pid = captured(first, "pid");
  for (const LogEvent& event : facts.events) {
    if (&event == &first || event.rank < 0 || !event.captures.count("exit")) continue;
    bool same_process = !pid.empty() && captured(event, "pid") == pid;
    bool summary = pid.empty() && event.file == first.file && event.place > first.place;
    if (!same_process && !summary) continue;
    cause.ranks = {event.rank};
    if (cause.host.empty()) cause.host = event.host;
    cause.evidence.push_back(evidence_of(event));
    return;
  }
}

}  // namespace

bool is_plain(const LogEvent& event) { return event.signature == &traceback_signature(); }

std::string captured(const LogEvent& event, const char* name) {
  auto found = event.captures.find(name);
  return found == event.captures.end() ? "" : found->second;
}

LogEvidence evidence_of(const LogEvent& event) { return {event.file, event.line, event.text, event.raised_at(), event.way}; }

LogCause full_cause(const LogFacts& facts, const LogEvent& event) {
  LogCause cause = cause_of(event);
  gather(facts, cause, event);
  name_rank(facts, cause, event);
  // The host of a tag is where the line was written, which need not be the host that it is about: only a named one counts.
  for (const char* slot : {"host", "pid"})
    if (std::string value = captured(event, slot); !value.empty()) cause.observed[slot] = value;
  if (cause.ranks.size() == 1) cause.observed["rank"] = std::to_string(cause.ranks[0]);
  return cause;
}

LogCause cause_of(const LogFacts& facts, const WatchdogVerdict& verdict) {
  LogCause cause;
  cause.code = verdict.standstill.code;
  cause.ranks = verdict.standstill.culprits;
  cause.detail = verdict.standstill.evidence;
  for (size_t i : verdict.events) {
    if (cause.evidence.size() == kMostEvidence) break;
    const LogEvent& event = facts.events[i];
    cause.evidence.push_back(evidence_of(event));
    bool culprit = std::find(cause.ranks.begin(), cause.ranks.end(), event.rank) != cause.ranks.end();
    if (culprit && cause.host.empty()) cause.host = event.host;
  }
  return cause;
}

}  // namespace phalanx::diagnosis
