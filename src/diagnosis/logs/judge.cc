// The judge of logs: which event is the verdict, and which only followed.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "codes/values.h"
#include "diagnosis/logs/advice.h"
#include "diagnosis/logs/cause.h"
#include "diagnosis/logs/family.h"
#include "diagnosis/logs/known_message.h"
#include "diagnosis/logs/survived.h"
#include "diagnosis/logs/verdict.h"

namespace phalanx::diagnosis {
namespace {

using words::tr;

constexpr size_t kMostOthers = 8;
constexpr uint64_t kWentOn = 2000;      // lines a writer goes on after an exception that did not end it
constexpr uint64_t kSameTrouble = 250;  // lines within which a plain exception and a known fault are one thing

// What machines and kernels say explains what programs say.
bool from_kernel(const LogEvent& event) {
  std::string_view code = event.signature->code;
  return code == "RUN-OOM-HOST" || code == "RUN-OOM-CGROUP" || code.starts_with("GPU-XID-") || event.signature->literal == "Xid (PCI:";
}

int nearness(const LogEvent& event) { return from_kernel(event) ? 2 : is_plain(event) ? 0 : 1; }

// Whether a comes before b as a cause.
bool before(const LogEvent& a, const LogEvent& b) {
  if (a.file == b.file) return a.place < b.place;
  if (nearness(a) == 2 || nearness(b) == 2) {
    if (nearness(a) != nearness(b)) return nearness(a) > nearness(b);
  }
  if (a.time && b.time && *a.time != *b.time) return *a.time < *b.time;
  if (nearness(a) != nearness(b)) return nearness(a) > nearness(b);
  return a.place < b.place;
}

using Events = std::vector<const LogEvent*>;

// Without what was survived.
Events of_role(const LogFacts& facts, const Survival& survival, Role role) {
  Events out;
  for (const LogEvent& event : facts.events)
    if (event.signature->role == role && !survival.survived(event)) out.push_back(&event);
  return out;
}

// An exception somebody caught: its writer's file goes on for thousands of lines, and something else breaks later.
bool went_on(const LogFacts& facts, const LogEvent& event, const Events& roots) {
  if (!is_plain(event)) return false;
  uint64_t lines = facts.files[event.file].lines;
  if (lines < event.line + kWentOn) return false;
  return std::any_of(roots.begin(), roots.end(),
                     [&](const LogEvent* other) { return other->file == event.file && other->line > event.line + kWentOn; });
}

// A known fault near a plain exception of the same writer is the better name for both.
const LogEvent* better_named(const LogEvent* event, const Events& roots) {
  if (!is_plain(*event)) return event;
  for (const LogEvent* other : roots)
    if (!is_plain(*other) && other->file == event->file && other->source == event->source && other->line > event->line &&
        other->line - event->line <= kSameTrouble)
      return other;
  return event;
}

bool is_timeout(const LogEvent& event) { return event.captures.count("seq") || event.captures.count("enqueued"); }

// The causes in order: roots, then symptoms; one per code.
std::vector<LogCause> rank_causes(const LogFacts& facts, const Survival& survival, const std::vector<int>& missing) {
  std::vector<LogCause> out;
  auto add = [&](LogCause cause) {
    if (std::none_of(out.begin(), out.end(), [&](const LogCause& c) { return c.code == cause.code; })) out.push_back(std::move(cause));
  };
  Events roots = of_role(facts, survival, Role::kRoot), late;
  std::stable_sort(roots.begin(), roots.end(), [](const LogEvent* a, const LogEvent* b) { return before(*a, *b); });
  for (const LogEvent* event : roots) {
    if (went_on(facts, *event, roots)) late.push_back(event);
    else add(full_cause(facts, *better_named(event, roots)));
  }
  Events symptoms = of_role(facts, survival, Role::kSymptom);
  std::stable_sort(symptoms.begin(), symptoms.end(), [](const LogEvent* a, const LogEvent* b) { return before(*a, *b); });
  // DDP's "inconsistent 0 params" is what a rank sees of a collective that timed out.
  if (std::any_of(symptoms.begin(), symptoms.end(), [](const LogEvent* event) { return is_timeout(*event); }))
    std::stable_partition(symptoms.begin(), symptoms.end(),
                          [](const LogEvent* event) { return event->signature->code != "RUN-DDP-MODEL-DIFFERS"; });
  std::stable_partition(symptoms.begin(), symptoms.end(), [](const LogEvent* event) { return !is_generic(event->signature->code); });
  bool compared = false;
  for (const LogEvent* event : symptoms) {
    if (!is_timeout(*event)) {
      add(full_cause(facts, *event));
    } else if (!compared) {
      compared = true;
      if (auto verdict = compare_watchdogs(facts, missing)) add(cause_of(facts, *verdict));
      else add(full_cause(facts, *event));
    }
  }
  for (const LogEvent* event : late) add(full_cause(facts, *event));
  return out;
}

// What followed from a failure: neither survived, nor said while the programs ended after the training.
std::vector<LogCascade> fold_cascades(const LogFacts& facts, const Survival& survival) {
  std::map<std::string, LogCascade> folded;
  std::set<std::string_view> told;
  for (const LogEvent& event : facts.events)
    if (!survival.survived(event) && !survival.after_the_end(event)) told.insert(event.signature->code);
  for (const LogCount& count : facts.counts) {
    if (count.signature->role != Role::kCascade || !told.count(count.signature->code)) continue;
    LogCascade& cascade = folded[std::string(count.signature->code)];
    cascade.code = count.signature->code;
    cascade.count += count.count;
    cascade.ranks.insert(cascade.ranks.end(), count.ranks.begin(), count.ranks.end());
  }
  for (const LogEvent& event : facts.events)
    if (event.signature->role == Role::kCascade && told.count(event.signature->code))
      if (LogCascade& cascade = folded[std::string(event.signature->code)]; cascade.first.line == 0) cascade.first = evidence_of(event);
  std::vector<LogCascade> out;
  for (auto& [code, cascade] : folded) {
    std::sort(cascade.ranks.begin(), cascade.ranks.end());
    cascade.ranks.erase(std::unique(cascade.ranks.begin(), cascade.ranks.end()), cascade.ranks.end());
    out.push_back(std::move(cascade));
  }
  std::stable_sort(out.begin(), out.end(), [](const LogCascade& a, const LogCascade& b) { return a.count > b.count; });
  return out;
}

// A code that says only that something failed wins only where no other candidate says what. A program that the script around the job did
// not find is a cause only where the job did nothing: scripts go on after it.
void put_specific_first(std::vector<LogCause>& causes) {
  if (causes.empty()) return;
  bool script = causes.front().code == "ENV-NO-PROGRAM";
  if (!script && !is_generic(causes.front().code)) return;
  auto says_what = [&](const LogCause& cause) {
    return !is_generic(cause.code) && (script ? &cause != &causes.front() : cause.code != "RUN-EXCEPTION" && cause.code != "HANG-TIMEOUT");
  };
  auto found = std::find_if(causes.begin(), causes.end(), says_what);
  if (found != causes.end()) std::rotate(causes.begin(), found, found + 1);
}

// Whether a suspect can be behind a failure that does not say why: codes/values/suspects.tsv.
bool can_explain(const LogEvent& suspect, std::string_view code) {
  const codes::ValueTable& table = codes::values("suspects");
  for (size_t i = 0; i < table.size(); ++i)
    if (table.row(i)[0] == suspect.signature->code && table.row(i)[1] == code) return true;
  return false;
}

void put_suspect_first(std::vector<LogCause>& causes, const LogFacts& facts, const Survival& survival) {
  if (causes.empty()) return;
  for (const LogEvent* suspect : of_role(facts, survival, Role::kSuspect)) {
    if (!can_explain(*suspect, causes.front().code)) continue;
    LogCause cause = full_cause(facts, *suspect);
    cause.detail.add(tr("; "), tr("no line blames it, but nothing else explains {}", causes.front().code));
    causes.insert(causes.begin(), std::move(cause));
    return;
  }
}

// The second root candidate, if nothing tells which of the first two came first: they are in different files, and a time is missing.
const LogEvent* equally_early(const LogFacts& facts, const Survival& survival, const LogCause& first) {
  const LogEvent *ours = nullptr, *other = nullptr;
  for (const LogEvent* event : of_role(facts, survival, Role::kRoot)) {
    if (is_plain(*event) || from_kernel(*event)) continue;
    if (event->signature->code == first.code) ours = ours ? ours : event;
    else if (!other) other = event;
  }
  bool unordered = ours && other && ours->file != other->file && (!ours->time || !other->time);
  return unordered && !is_generic(other->signature->code) ? other : nullptr;
}

// Both hypotheses, and the one observation that decides between them.
void tell_margin(LogVerdict& verdict, const LogFacts& facts, const Survival& survival) {
  const LogEvent* other = equally_early(facts, survival, *verdict.cause);
  if (!other) return;
  auto name = [&](size_t file) { return facts.files[file].name.substr(facts.files[file].name.rfind('/') + 1); };
  verdict.cause->detail.add(tr("; "),
                            tr("{} in {}:{} is as likely: whichever line was printed first is the cause, and the logs lack the times that "
                               "would show it",
                               other->signature->code, name(other->file), other->line));
}

std::vector<int> missing_ranks(const LogFacts& facts) {
  std::vector<int> missing;
  constexpr int kMost = 1 << 16;
  for (int rank = 0; rank < std::min(facts.world, kMost); ++rank)
    if (!facts.ranks.count(rank)) missing.push_back(rank);
  // None was told apart: the logs have no tags, and all may be in them.
  return facts.ranks.empty() ? std::vector<int>() : missing;
}

// "10.0.0.1, gpu01": whom the victims' messages name, without ports.
std::string peers_of(const LogFacts& facts) {
  constexpr size_t kMostPeers = 8;
  std::set<std::string> peers;
  for (const LogEvent& event : facts.events) {
    std::string peer = captured(event, "address");
    peer = peer.substr(0, std::min(peer.find('<'), peer.size()));
    if (!peer.empty() && peers.size() < kMostPeers) peers.insert(base::printable(peer, 80));
  }
  return base::join(std::vector<std::string>(peers.begin(), peers.end()), ", ");
}

LogCause root_elsewhere(const LogVerdict& verdict, const LogFacts& facts) {
  LogCause cause;
  cause.code = "LOG-ROOT-ELSEWHERE";
  for (const LogCascade& cascade : verdict.cascades)
    if (cause.evidence.size() < kMostEvidence && cascade.first.line > 0) cause.evidence.push_back(cascade.first);
  std::string here = base::format_ranges(verdict.ranks), gone = base::format_ranges(verdict.missing);
  if (!verdict.missing.empty()) cause.detail = tr("the logs of rank {} are missing", gone);
  else if (!verdict.ranks.empty()) cause.detail = tr("these logs contain only rank {}, and only consequences of the failure", here);
  if (std::string peers = peers_of(facts); !peers.empty()) cause.detail.add(tr("; "), tr("the messages mention {}", peers));
  return cause;
}

// What was survived, one line per code: no part of the verdict.
std::optional<LogSection> survived_section(const LogFacts& facts, const Survival& survival) {
  constexpr size_t kMostNotes = 8;
  LogSection section;
  std::set<std::string_view> told;
  for (const LogEvent& event : facts.events) {
    if (event.signature->role == Role::kCascade || !survival.survived(event) || !told.insert(event.signature->code).second) continue;
    std::string_view path = facts.files[event.file].name;
    std::string_view name = path.substr(path.rfind('/') == path.npos ? 0 : path.rfind('/') + 1);
    section.lines.push_back(tr("{}: {}:{}: {}", event.signature->code, name, event.line, event.text.substr(0, 160)));
    if (section.lines.size() == kMostNotes) break;
  }
  if (section.lines.empty()) return std::nullopt;
  section.title = tr("Survived: the work went on afterwards");
  return section;
}

// By the file that the line names, else by its words.
doctor::Words family_of_unexplained(std::string_view text) {
  if (doctor::Words family = family_of_line(text); !family.empty()) return family;
  const codes::KnownMessage* known = known_message(text);
  return known ? family_of_message(*known) : doctor::Words{};
}

// Whether the catalogue says that the message is harmless, or follows from something else.
bool tells_no_cause(const LogEvent& event) {
  const codes::KnownMessage* known = known_message(event.text);
  return known && !known->code.empty() && (known->role == Role::kBenign || known->role == Role::kCascade);
}

// Where nothing else explains the failure: the first of the unexplained messages that has a code of its own in the catalogue, one that can
// be the cause before one that is a symptom. A warning after which the library went on is no cause of what broke later, so a message of
// the catalogue never stands before a signature.
std::optional<LogCause> cause_by_catalogue(const LogFacts& facts, const Survival& survival) {
  for (Role role : {Role::kRoot, Role::kSymptom})
    for (const LogEvent& event : facts.unexplained) {
      const codes::KnownMessage* known = known_message(event.text);
      if (!known || known->code.empty() || known->role != role || survival.survived(event) || survival.after_the_end(event)) continue;
      LogEvent meant = event;
      meant.signature = meaning_of(*known);
      return full_cause(facts, meant);
    }
  return std::nullopt;
}

// What NCCL warned of in words that no signature knows belongs to a verdict that says no more than that NCCL failed; without a verdict it
// is a section of its own.
void add_unexplained(LogVerdict& verdict, const LogFacts& facts, const Survival& survival) {
  LogSection section;
  bool vague = verdict.cause && (is_generic(verdict.cause->code) || verdict.cause->code == "LOG-ROOT-ELSEWHERE");
  for (const LogEvent& event : facts.unexplained) {
    if (survival.survived(event) || survival.after_the_end(event) || tells_no_cause(event)) continue;
    doctor::Words family = family_of_unexplained(event.text);
    if (vague && verdict.cause->code != "RUN-EXIT-CODE") {
      if (!family.empty()) verdict.cause->detail.add(tr("; "), tr("a warning comes from {}", family));
      verdict.cause->evidence.insert(verdict.cause->evidence.begin(), evidence_of(event));
      return;
    }
    if (verdict.cause || section.lines.size() == kMostOthers) continue;
    std::string text = event.text.substr(0, 160);
    section.lines.push_back(family.empty() ? doctor::Words{text, text} : tr("{}: {}", family, text));
  }
  if (section.lines.empty()) return;
  section.title = tr("Warnings that phalanx does not know");
  verdict.sections.push_back(std::move(section));
}

// Bugs that were fixed in a later release than the one in use, of a run that failed: hints with their sources, no verdict.
void add_bugs(LogVerdict& verdict, const LogFacts& facts) {
  constexpr size_t kMostBugs = 4;
  if (!verdict.cause) return;
  LogSection section;
  for (const FittingBug& fits : fitting_bugs(facts.bugs, verdict.last_work)) {
    const codes::KnownBug& bug = *fits.bug;
    const std::string_view name = component_name(bug.component);
    section.lines.push_back(tr("{} {}, fixed in {}: {} ({})", name, fits.version, bug.fixed, bug.what, bug.source));
    if (!bug.workaround.empty()) section.lines.back().add(tr("; "), tr("workaround until the upgrade: {}", bug.workaround));
    if (section.lines.size() == kMostBugs) break;
  }
  if (section.lines.empty()) return;
  section.title = tr("Known bugs of these versions that fit the log");
  verdict.sections.push_back(std::move(section));
}

}  // namespace

bool is_generic(std::string_view code) {
  static constexpr std::array<std::string_view, 8> kGeneric = {"NCCL-SYSTEM-ERROR",  "NCCL-INTERNAL", "NCCL-CUDA-ERROR",
                                                               "NCCL-INVALID-USAGE", "RUN-EXIT-CODE", "RUN-ABORTED",
                                                               "RUN-TERMINATED",     "GPU-CUDA-ERROR"};
  return std::find(kGeneric.begin(), kGeneric.end(), code) != kGeneric.end();
}

LogVerdict judge_logs(LogFacts facts) {
  LogVerdict verdict;
  verdict.files = facts.files;
  verdict.ranks.assign(facts.ranks.begin(), facts.ranks.end());
  verdict.world = facts.world;
  verdict.missing = missing_ranks(facts);
  Survival survival(facts);
  for (size_t file = 0; file < facts.files.size(); ++file) verdict.last_work.push_back(survival.last_work(file));
  verdict.cascades = fold_cascades(facts, survival);
  if (auto section = survived_section(facts, survival)) verdict.sections.push_back(std::move(*section));
  std::vector<LogCause> causes = rank_causes(facts, survival, verdict.missing);
  put_specific_first(causes);
  put_suspect_first(causes, facts, survival);
  if (!causes.empty()) {
    verdict.cause = std::move(causes.front());
    causes.erase(causes.begin());
    if (causes.size() > kMostOthers) causes.resize(kMostOthers);
    verdict.others = std::move(causes);
    tell_margin(verdict, facts, survival);
  } else if (std::optional<LogCause> known = cause_by_catalogue(facts, survival)) {
    verdict.cause = std::move(*known);
  } else if (!verdict.cascades.empty()) {
    verdict.cause = root_elsewhere(verdict, facts);
  }
  add_unexplained(verdict, facts, survival);
  add_advice(verdict);
  add_bugs(verdict, facts);
  return verdict;
}

}  // namespace phalanx::diagnosis
