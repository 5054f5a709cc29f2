#include "view/terminal/run_bar.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/unicode.h"
#include "view/phrases.h"
#include "view/speed.h"

namespace phalanx::view {
namespace {

constexpr size_t kMostGaugeColumns = 40;
constexpr size_t kLeastGaugeColumns = 7;

// One word group of the bar. When there is no room, the piece with the highest `drop` goes first; 0 stays.
struct Piece {
  std::string text;
  int drop = 0;
};

std::string safe(std::string_view text, size_t most) {
  std::string shown = base::printable(text, 256);
  return std::string(base::fit_columns(shown, most));
}

// Of the phases that phalanx-train names, in the reader's language; another program's as it is.
std::string phase_name(const std::string& phase, base::Language language) {
  static constexpr std::pair<std::string_view, words::Text> kPhases[] = {{"load", words::Text{"load##phase"}},
                                                                         {"eval", words::Text{"eval##phase"}},
                                                                         {"save", words::Text{"save##phase"}},
                                                                         {"sample", words::Text{"sample##phase"}},
                                                                         {"done", words::Text{"done##phase"}}};
  for (const auto& [name, text] : kPhases)
    if (name == phase) return std::string(text.in(language));
  return safe(phase, 16);
}

}  // namespace

struct RunBar::Figures {
  std::string name;  // "step" or the bar's own description
  std::optional<double> done, total, fraction, eta_s;
  std::string loss, tokens, rate, postfix;
  bool event = false;
};

std::string format_clock(double seconds) {
  int64_t s = static_cast<int64_t>(std::clamp(std::round(seconds), 0.0, 1e9));
  int64_t days = s / 86400, hours = s / 3600 % 24, minutes = s / 60 % 60;
  s %= 60;
  if (days > 0) return fmt::format("{}d {}:{:02}:{:02}", days, hours, minutes, s);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, s);
  return fmt::format("{}:{:02}", minutes, s);
}

std::string draw_gauge(double fraction, size_t columns, bool utf8) {
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  size_t inside = columns - 2;
  double filled = std::clamp(fraction, 0.0, 1.0) * static_cast<double>(inside);
  size_t whole = std::min(inside, static_cast<size_t>(filled));
  if (!utf8) return "[" + std::string(whole, '#') + std::string(inside - whole, ' ') + "]";
  size_t eighths = static_cast<size_t>((filled - static_cast<double>(whole)) * 8);
  std::string out = "▕";
  for (size_t i = 0; i < whole; ++i) out += "█";
  if (whole < inside) out += kEighths[eighths];
  size_t used = whole + (whole < inside && eighths > 0 ? 1 : 0);
  return out + std::string(inside - used, ' ') + "▏";
}

void RunBar::progress(int rank, const wire::RankProgress& progress, os::Mono now) {
  Rank& r = ranks_[static_cast<size_t>(rank)];
  bool comparable = r.event && r.event->step && progress.step && r.event->phase == progress.phase;
  if (comparable && *progress.step > *r.event->step) {
    constexpr double kNewest = 0.2;  // weight of the newest step in the mean
    double each = std::chrono::duration<double>(now - r.step_at).count() / static_cast<double>(*progress.step - *r.event->step);
    r.seconds_per_step = r.seconds_per_step > 0 ? (1 - kNewest) * r.seconds_per_step + kNewest * each : each;
    r.step_at = now;
  } else if (!comparable || *progress.step < *r.event->step) {
    r.seconds_per_step = 0;
    r.step_at = now;
  }
  // A report without a figure leaves the last one standing, within a phase.
  wire::RankProgress merged = progress;
  if (r.event && r.event->phase == progress.phase) {
    if (!merged.step) merged.step = r.event->step;
    if (!merged.total) merged.total = r.event->total;
    if (!merged.loss) merged.loss = r.event->loss;
    if (!merged.tokens_per_s) merged.tokens_per_s = r.event->tokens_per_s;
    if (!merged.samples_per_s) merged.samples_per_s = r.event->samples_per_s;
  }
  r.event = std::move(merged);
}

void RunBar::bar(int rank, logs::Bar bar) {
  auto speaker = std::find_if(speakers_.begin(), speakers_.end(), [&](const Speaker& s) { return logs::same_bar(s.bar, bar); });
  if (speaker != speakers_.end()) {
    speaker->rank = std::min(speaker->rank, rank);
  } else {
    if (speakers_.size() == kMaxSpeakers) speakers_.erase(speakers_.begin());
    speakers_.push_back({bar, rank});
  }
  ranks_[static_cast<size_t>(rank)].bar = std::move(bar);
}

RunBar::End RunBar::ends_bar(int rank, std::string_view line) {
  Rank& r = ranks_[static_cast<size_t>(rank)];
  if (!r.bar) return End::kNone;
  std::optional<logs::Bar> last = logs::parse_bar(line);
  bool ends = last && logs::same_bar(*last, *r.bar);
  if (ends || r.bar->complete()) r.bar.reset();
  if (!ends) return End::kNone;
  for (const Speaker& speaker : speakers_)
    if (logs::same_bar(speaker.bar, *last)) return speaker.rank < rank ? End::kSpokenFor : End::kOwn;
  return End::kOwn;
}

const RunBar::Rank* RunBar::leader() const {
  const Rank* first_bar = nullptr;
  for (const Rank& rank : ranks_) {
    if (rank.shows_event()) return &rank;
    if (rank.bar && !first_bar) first_bar = &rank;
  }
  return first_bar;
}

bool RunBar::from_events() const {
  const Rank* lead = leader();
  return lead && lead->shows_event();
}

RunBar::Figures RunBar::figures(const Rank& rank, const Speech& speech) const {
  Figures f;
  if (!rank.shows_event()) {
    const logs::Bar& bar = *rank.bar;
    f.name = safe(bar.desc, 32);
    f.done = bar.done;
    f.total = bar.total;
    f.fraction = bar.fraction;
    f.eta_s = bar.eta_s;
    f.rate = safe(bar.rate, 16);
    f.postfix = safe(bar.postfix, 48);
    return f;
  }
  const wire::RankProgress& event = *rank.event;
  f.event = true;
  bool named = !event.phase.empty() && event.phase != "train";
  f.name = named ? phase_name(event.phase, speech.language()) : "";
  if (event.step) f.done = static_cast<double>(*event.step);
  if (event.total) f.total = static_cast<double>(*event.total);
  if (f.done && f.total && *f.total > 0) f.fraction = std::clamp(*f.done / *f.total, 0.0, 1.0);
  if (event.loss) f.loss = speech(kLossPhrase, fmt::format("{:.4g}", *event.loss));
  f.tokens = speed_text(event.tokens_per_s, event.samples_per_s, speech.language());
  if (f.done && f.total && *f.done < *f.total && rank.seconds_per_step > 0) f.eta_s = (*f.total - *f.done) * rank.seconds_per_step;
  return f;
}

std::string RunBar::spread(const Rank& lead, bool utf8, const Speech& speech) const {
  std::optional<double> least, most;
  for (const Rank& rank : ranks_) {
    std::optional<double> done;
    if (lead.shows_event() && rank.event && rank.event->step) done = static_cast<double>(*rank.event->step);
    if (!lead.shows_event() && rank.bar && logs::same_bar(*rank.bar, *lead.bar)) done = rank.bar->done;
    if (!done) continue;
    least = std::min(least.value_or(*done), *done);
    most = std::max(most.value_or(*done), *done);
  }
  if (!least || *least == *most) return "";
  return speech(kSpreadPhrase, fmt::format("{:.0f}{}{:.0f}", *least, utf8 ? "–" : "-", *most));
}

std::string RunBar::text(size_t columns, bool utf8, bool gauge, const Speech& speech) const {
  const Rank* lead = leader();
  if (!lead) return "";
  Figures f = figures(*lead, speech);
  auto whole = [](double value) { return value < 1e7 ? fmt::format("{:.0f}", value) : format_count(value); };
  std::string count;
  if (f.done) count = whole(*f.done);
  if (f.done && f.total) count += "/" + whole(*f.total);
  if (f.event && !count.empty()) count = speech(kStepPhrase, count);
  std::vector<Piece> pieces;
  auto add = [&](std::string text, int drop) {
    if (!text.empty()) pieces.push_back({std::move(text), drop});
  };
  add(f.name, 2);
  add(count, 0);
  size_t gauge_at = pieces.size();
  if (f.fraction) add(fmt::format("{:.0f}%", std::floor(*f.fraction * 100)), 0);
  add(f.loss, 3);
  add(f.tokens, 6);
  add(f.rate, 5);
  add(f.postfix, 7);
  add(spread(*lead, utf8, speech), 4);
  if (f.eta_s) add(speech(kEtaPhrase, format_clock(*f.eta_s)), 1);
  auto width = [&] {
    size_t sum = 0;
    for (const Piece& piece : pieces) sum += base::display_width(piece.text) + 1;
    return sum > 0 ? sum - 1 : 0;
  };
  while (width() > columns && pieces.size() > 1) {
    auto least = std::max_element(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.drop < b.drop; });
    if (least - pieces.begin() < static_cast<ptrdiff_t>(gauge_at)) --gauge_at;
    pieces.erase(least);
  }
  size_t used = width();
  if (gauge && f.fraction && used + kLeastGaugeColumns + 1 <= columns)
    pieces.insert(pieces.begin() + static_cast<ptrdiff_t>(gauge_at),
                  {draw_gauge(*f.fraction, std::min(columns - used - 1, kMostGaugeColumns), utf8), 0});
  std::string out;
  for (const Piece& piece : pieces) out += (out.empty() ? "" : " ") + piece.text;
  return std::string(base::fit_columns(out, columns));
}

}  // namespace phalanx::view
