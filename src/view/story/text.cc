#include <fmt/format.h>

#include "base/name_ranges.h"
#include "base/text.h"
#include "base/unicode.h"
#include "base/wrap.h"
#include "view/story/story.h"
#include "words/message.h"
#include "words/said.h"

namespace phalanx::view {
namespace {

using words::Text;
using words::tr;

constexpr size_t kMostText = 2000;
constexpr size_t kAdviceColumns = 100;
constexpr size_t kClock = 12;                                        // "07:31:02.123"
const std::string kBelow = "\n" + std::string(2 + kClock + 2, ' ');  // lines after the first begin below its text

void add_row(std::string& out, Text name, const std::string& value, base::Language language) {
  if (value.empty()) return;
  out += base::pad_right(name.in(language), 10) + value + "\n";
}

// The clock time of "2026-11-21T07:31:02.123Z"; the day stands in the head.
std::string clock_of(const std::string& time) { return time.size() >= 11 + kClock ? time.substr(11, kClock) : time; }

}  // namespace

bool wants_code(const Story& story) {
  if (story.code.empty()) return false;
  for (const base::Error& error : story.verdict)
    if (error.hint.find("phalanx explain " + story.code) != std::string::npos) return false;
  return true;
}

std::string shown_lines(std::string_view text) {
  text = base::trim(text);
  if (text.size() <= kMostText) return base::printable_lines(text);
  size_t end = kMostText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // the first byte of a character
  return base::printable_lines(text.substr(0, end)) + "…";
}

std::string story_text(const Story& story, base::Language language, size_t most_events) {
  std::string out;
  add_row(out, Text{"run"}, story.id, language);
  add_row(out, Text{"state"}, story.state, language);
  add_row(out, Text{"command"}, base::printable(story.command, kMostText), language);
  add_row(out, Text{"began"}, story.began, language);
  add_row(out, Text{"ended"}, story.ended, language);
  if (story.ranks > 0)
    add_row(out, Text{"ranks"},
            tr(language, "{} on {}", story.ranks, base::printable(base::join(base::fold_names(story.hosts), ","), kMostText)), language);
  for (const base::Error& error : story.verdict) out += "\n" + words::render(error, language);
  if (wants_code(story)) out += fmt::format("\n{}: phalanx explain {}\n", story.code, story.code);
  if (!story.advice.empty()) out += fmt::format("\n{}\n", Text{"What to do"}.in(language));
  for (const std::string& advice : story.advice)
    for (const std::string& line : base::wrap(advice, kAdviceColumns)) out += "  " + line + "\n";
  if (!story.now.empty()) out += "\n";
  for (const std::string& line : story.now) out += line + "\n";
  if (story.timeline.empty() || most_events == 0) return base::printable_lines(out);
  out += fmt::format("\n{}\n", Text{"last events (UTC)"}.in(language));
  size_t first = story.timeline.size() > most_events ? story.timeline.size() - most_events : 0;
  for (size_t i = first; i < story.timeline.size(); ++i)
    out += fmt::format("  {}  {}\n", clock_of(story.timeline[i].time),
                       base::replace_all(shown_lines(words::said_in(language, story.timeline[i].text)), "\n", kBelow));
  return base::printable_lines(out);
}

}  // namespace phalanx::view
