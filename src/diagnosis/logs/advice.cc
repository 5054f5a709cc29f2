#include "diagnosis/logs/advice.h"

#include <algorithm>

#include "codes/advice.h"

namespace phalanx::diagnosis {
namespace {

constexpr size_t kMostAdvice = 2;

// An exception without words is known by the line of code that raised it: "AssertionError" at "…: assert not args.bf16".
std::string said_by(const LogEvidence& evidence) {
  const bool bare = evidence.text.find(": ") == std::string::npos && !evidence.place.empty();
  return bare ? evidence.text + ": " + evidence.place : evidence.text;
}

bool is_at(const LogEvidence& evidence, const codes::Advice& advice) {
  return (advice.on_the_way ? evidence.way : evidence.place).find(advice.place) != std::string::npos;
}

}  // namespace

bool says_little(std::string_view code) { return is_generic(code) || code == "RUN-EXCEPTION" || code == "LOG-ROOT-ELSEWHERE"; }

// What is known of a message where it was raised is closer than what is known of it anywhere.
void add_advice(LogCause& cause, const std::vector<LogEvidence>& lines) {
  std::vector<const codes::Advice*> taken;
  auto take = [&](const LogEvidence& evidence, bool at_place) {
    const size_t before = taken.size();
    const std::string text = said_by(evidence);
    for (const codes::Advice& one : codes::all_advice()) {
      if (cause.advice.size() == kMostAdvice) break;
      if (one.place.empty() == at_place || !is_at(evidence, one)) continue;
      auto same = [&](const codes::Advice* other) { return other->english == one.english; };  // rows for several places
      const auto between = codes::between_words(text, one.words);
      if (!between || std::any_of(taken.begin(), taken.end(), same)) continue;
      taken.push_back(&one);
      cause.advice.push_back({codes::filled(one.english, *between), codes::filled(one.chinese, *between)});
    }
    return taken.size() > before;
  };
  for (auto evidence = lines.rbegin(); evidence != lines.rend(); ++evidence)
    if (!take(*evidence, true)) take(*evidence, false);
}

void add_advice(LogVerdict& verdict) {
  if (!verdict.cause) return;
  LogCause& cause = *verdict.cause;
  add_advice(cause, cause.evidence);
  for (const LogCause& other : verdict.others)
    if (cause.advice.empty() && says_little(cause.code)) add_advice(cause, other.evidence);
}

}  // namespace phalanx::diagnosis
