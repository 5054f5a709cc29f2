#include "diagnosis/logs/advice.h"

#include <algorithm>

#include "codes/advice.h"
#include "codes/catalogue.h"
#include "codes/values.h"
#include "diagnosis/logs/known_message.h"

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

// What one row says of a message is said better by another that asks for all of it and for more.
bool is_general_form(const codes::Advice& general, const codes::Advice& exact) {
  std::string all;
  for (std::string_view word : exact.words) all += std::string(word) + "\n";
  size_t size = 0;
  for (std::string_view word : general.words) size += word.size() + 1;
  return size < all.size() && codes::between_words(all, general.words).has_value();
}

// The rows that fit a message, at its place or anywhere, without those that another says better.
std::vector<const codes::Advice*> fitting(const LogEvidence& evidence, const std::string& text, bool at_place) {
  std::vector<const codes::Advice*> rows;
  for (const codes::Advice& one : codes::all_advice())
    if (one.place.empty() != at_place && (!at_place || is_at(evidence, one)) && codes::between_words(text, one.words)) rows.push_back(&one);
  std::vector<const codes::Advice*> best;
  for (const codes::Advice* one : rows)
    if (std::none_of(rows.begin(), rows.end(), [&](const codes::Advice* other) { return is_general_form(*one, *other); }))
      best.push_back(one);
  return best;
}

// Whether a value in the message, such as an error number, decided on another cause than the message itself stands for.
bool is_decided_by_value(const LogCause& cause, const codes::KnownMessage& known) {
  return !known.code.empty() && known.code != cause.code && !says_little(cause.code) && !known.file.ends_with(".py");
}

// The meaning of the Xid in a line of the kernel's log; the code's page is about a whole class of them.
std::optional<doctor::Words> xid_answer(std::string_view line) {
  const size_t card = line.find(" Xid (PCI:");
  const size_t close = card == line.npos ? line.npos : line.find("): ", card);
  if (close == line.npos) return std::nullopt;
  const std::string_view number = line.substr(close + 3);
  const codes::ValueRow row = codes::values("xid").find(number.substr(0, number.find_first_not_of("0123456789")));
  if (row.empty()) return std::nullopt;
  return doctor::Words{std::string(row[2]), std::string(row[3])};
}

void add(LogCause& cause, doctor::Words said) {
  auto is_same = [&](const doctor::Words& other) { return other.english == said.english; };
  if (cause.advice.size() < kMostAdvice && std::none_of(cause.advice.begin(), cause.advice.end(), is_same))
    cause.advice.push_back(std::move(said));
}

// What the tables know of the message: of its Xid, or in the catalogue.
void add_answer(LogCause& cause, const LogEvidence& evidence) {
  if (std::optional<doctor::Words> xid = xid_answer(evidence.text)) return add(cause, std::move(*xid));
  std::string_view module = std::string_view(evidence.place).substr(0, evidence.place.find(' '));
  if (module.find('/') == module.npos) module = {};  // a file of the user's, whatever its name
  const codes::KnownMessage* known = known_message(evidence.text, module);
  if (!known || is_decided_by_value(cause, *known)) return;
  const std::optional<codes::Answer> answer = codes::answer_of(*known);
  const std::string_view words[] = {known->words, known->then};
  const auto between = codes::between_words(evidence.text, words);
  if (!answer || !between) return;
  add(cause, {codes::filled(answer->english, *between), codes::filled(answer->chinese, *between)});
}

}  // namespace

bool says_little(std::string_view code) { return is_generic(code) || code == "RUN-EXCEPTION" || code == "LOG-ROOT-ELSEWHERE"; }

// What is known of a message where it was raised is closer than what is known of it anywhere.
void add_advice(LogCause& cause, const std::vector<LogEvidence>& lines) {
  auto take = [&](const LogEvidence& evidence, bool at_place) {
    const std::string text = said_by(evidence);
    const std::vector<const codes::Advice*> rows = fitting(evidence, text, at_place);
    for (const codes::Advice* one : rows) {
      const auto between = *codes::between_words(text, one->words);
      add(cause, {codes::filled(one->english, between), codes::filled(one->chinese, between)});
    }
    return !rows.empty();
  };
  std::vector<const LogEvidence*> others;
  for (auto evidence = lines.rbegin(); evidence != lines.rend(); ++evidence)
    if (!take(*evidence, true) && !take(*evidence, false)) others.push_back(&*evidence);
  std::for_each(others.rbegin(), others.rend(), [&](const LogEvidence* evidence) { add_answer(cause, *evidence); });
}

void add_advice(LogVerdict& verdict) {
  if (!verdict.cause) return;
  LogCause& cause = *verdict.cause;
  add_advice(cause, cause.evidence);
  for (const LogCause& other : verdict.others)
    if (cause.advice.empty() && says_little(cause.code)) add_advice(cause, other.evidence);
}

}  // namespace phalanx::diagnosis
