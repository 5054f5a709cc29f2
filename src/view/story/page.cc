// report.html: verdict first, then ranks, curves and the timeline. Everything in it is escaped, nothing is loaded from anywhere, and no
// script runs (a Content-Security-Policy forbids it): the text of a rank's log can show nothing but itself.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/name_ranges.h"
#include "base/text.h"
#include "base/unicode.h"
#include "view/story/story.h"
#include "words/message.h"

namespace phalanx::view {
namespace {

using base::Language;
using words::Text;
using words::tr;

constexpr std::string_view kStyle = R"(
body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222;background:#fff}
h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}pre{background:#f4f4f4;padding:1em;overflow-x:auto;white-space:pre-wrap}
table{border-collapse:collapse}td,th{text-align:left;padding:.15em 1em .15em 0;vertical-align:top;overflow-wrap:anywhere}
th,.time{white-space:nowrap}.text{white-space:pre-wrap}.time{font-variant-numeric:tabular-nums}.day{padding-top:.6em}
.bad{color:#b00020}.dim{color:#666}
svg{max-width:100%;height:auto;background:#fafafa}
.state{padding:.1em .6em;border-radius:.3em;background:#e6f2e6}.state.bad{background:#fde7ea}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}pre,svg{background:#242424}.dim{color:#999}.bad{color:#ff8a96}
.state{background:#1f3a1f}.state.bad{background:#4a1c22}})";
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#7f7f7f"};
constexpr double kWidth = 860, kHeight = 260, kLeft = 70, kBottom = 30, kTop = 12, kRight = 12;
constexpr size_t kMostCurves = 16;
constexpr size_t kMostPoints = 2000;
constexpr size_t kMostEvents = 2000;
constexpr size_t kMostRanks = 4096;

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void take(double v) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  bool empty() const { return low > high; }
  // A flat line stands in the middle; what has no negative values does not get any.
  void widen() {
    if (high - low > 1e-12 * std::max(1.0, std::abs(high))) return;
    low = low >= 0 ? std::max(0.0, low - 0.5) : low - 0.5;
    high += 0.5;
  }
};

std::string number(double value) { return fmt::format("{:.4g}", value); }

double place_x(const Range& x, double at) { return kLeft + (at - x.low) / (x.high - x.low) * (kWidth - kLeft - kRight); }
double place_y(const Range& y, double at) { return kHeight - kBottom - (at - y.low) / (y.high - y.low) * (kHeight - kBottom - kTop); }

// Round values between the ends, at most six of them: multiples of 1, 2 or 5 times a power of ten. whole: of steps, which are counted.
std::vector<double> ticks(const Range& range, bool whole = false) {
  const double width = range.high - range.low;
  if (!std::isfinite(width) || width <= 0) return {range.low, range.high};
  const double power = std::pow(10, std::floor(std::log10(width / 5)));
  double step = 10 * power;
  for (double factor : {5.0, 2.0, 1.0})
    if (width / (factor * power) <= 5.5) step = factor * power;
  if (whole) step = std::max(1.0, step);
  std::vector<double> out;
  for (double n = std::ceil(range.low / step); n * step <= range.high && out.size() < 8; ++n) out.push_back(n * step);
  return out;
}

std::string path_of(const Curve& curve, const Range& x, const Range& y) {
  size_t every = std::max<size_t>(1, (curve.points.size() + kMostPoints - 1) / kMostPoints);
  std::string path;
  for (size_t i = 0; i < curve.points.size(); ++i) {
    auto [px, py] = curve.points[i];
    if ((i % every != 0 && i + 1 != curve.points.size()) || !std::isfinite(px) || !std::isfinite(py)) continue;
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", place_x(x, px), place_y(y, py));
  }
  return path;
}

std::string chart(const std::vector<Curve>& curves, std::string_view title, std::string_view unit) {
  Range x, y;
  for (const Curve& curve : curves)
    for (auto [px, py] : curve.points)
      if (std::isfinite(px) && std::isfinite(py)) {
        x.take(px);
        y.take(py);
      }
  if (x.empty()) return "";
  x.widen();
  y.widen();
  std::string out = fmt::format("<h2>{}</h2>\n<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" font-size=\"12\" fill=\"#888\">\n",
                                html(title), kWidth, kHeight, html(title));
  for (double at : ticks(y)) {
    const double sy = place_y(y, at);
    out += fmt::format("<path d=\"M{} {:.1f}H{}\" stroke=\"#8884\"/><text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft, sy,
                       kWidth - kRight, kLeft - 6, sy + 4, number(at));
  }
  for (double at : ticks(x, /*whole=*/true))
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", place_x(x, at), kHeight - 10, number(at));
  size_t shown = std::min(curves.size(), kMostCurves);
  for (size_t c = 0; c < shown; ++c) {
    const std::string path = path_of(curves[c], x, y);
    // A path of one point is not drawn; a round end makes it a dot.
    const bool dot = !path.empty() && path.find('L') == std::string::npos;
    out +=
        fmt::format("<path d=\"{}{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linecap=\"round\"><title>{}</title></path>\n",
                    path, dot ? "h0" : "", kColours[c % std::size(kColours)], dot ? "6" : "1.5", html(curves[c].name));
  }
  out += "</svg>\n<p class=\"dim\">" + html(unit);
  for (size_t c = 0; c < shown; ++c)
    out += fmt::format(" <span style=\"color:{}\">■</span> {}", kColours[c % std::size(kColours)], html(curves[c].name));
  if (curves.size() > shown) out += fmt::format(" (+{})", curves.size() - shown);
  return out + "</p>\n";
}

// "2026-11-21T07:31:02.123Z" is made of the day, up to kDay, and the clock time. Anything else stays as it is.
constexpr size_t kDay = 10, kClockBegin = 11, kClockBytes = 12;
bool is_moment(std::string_view time) { return time.size() >= kClockBegin + kClockBytes && time[kDay] == 'T'; }
std::string moment(const std::string& time) {
  return is_moment(time) ? fmt::format("{} {} UTC", time.substr(0, kDay), time.substr(kClockBegin, 8)) : time;
}

std::string head(const Story& story, Language language) {
  auto row = [&](Text name, const std::string& value) {
    return value.empty() ? std::string()
                         : fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", html(name.in(language)), html(base::printable(value, 4000)));
  };
  std::string out =
      fmt::format("<h1>{} <span class=\"state{}\">{}</span></h1>\n<table>\n", html(story.id), story.bad ? " bad" : "", html(story.state));
  out += row(Text{"command"}, story.command) + row(Text{"folder"}, story.workdir) + row(Text{"began"}, moment(story.began)) +
         row(Text{"ended"}, moment(story.ended));
  if (story.ranks > 0) out += row(Text{"ranks"}, std::to_string(story.ranks));
  return out + row(Text{"hosts"}, base::join(base::fold_names(story.hosts), ",")) + "</table>\n";
}

std::string verdict(const Story& story, Language language) {
  std::string text;
  for (const base::Error& error : story.verdict) text += error.render() + "\n";
  for (const std::string& line : story.now) text += line + "\n";
  if (wants_code(story)) text += story.code + ": phalanx explain " + story.code + "\n";
  if (text.empty()) return "";
  return fmt::format("<h2>{}</h2>\n<pre{}>{}</pre>\n", html(Text{"Verdict"}.in(language)), story.bad ? " class=\"bad\"" : "",
                     html(base::trim(text)));
}

// A column that no rank has anything for is left out.
std::string ranks(const Story& story, Language language) {
  if (story.table.empty()) return "";
  struct Column {
    Text name;
    std::string (*cell)(const StoryRank&);
  };
  static constexpr Column kColumns[] = {
      {Text{"rank"}, [](const StoryRank& rank) { return std::to_string(rank.rank); }},
      {Text{"host"}, [](const StoryRank& rank) { return base::printable(rank.host); }},
      {Text{"step"}, [](const StoryRank& rank) { return rank.step; }},
      {Text{"loss"}, [](const StoryRank& rank) { return rank.loss; }},
      {Text{"throughput"}, [](const StoryRank& rank) { return rank.speed; }},
      {Text{"s/step"}, [](const StoryRank& rank) { return rank.seconds_per_step ? number(*rank.seconds_per_step) : ""; }},
      {Text{"end"}, [](const StoryRank& rank) { return rank.end; }}};
  std::string out = fmt::format("<h2>{}</h2>\n<table>\n<tr>", html(Text{"Ranks##page"}.in(language)));
  std::vector<const Column*> shown;
  for (const Column& column : kColumns)
    if (std::any_of(story.table.begin(), story.table.end(), [&](const StoryRank& rank) { return !column.cell(rank).empty(); }))
      shown.push_back(&column);
  for (const Column* column : shown) out += "<th>" + html(column->name.in(language)) + "</th>";
  out += "</tr>\n";
  for (size_t r = 0; r < std::min(story.table.size(), kMostRanks); ++r) {
    out += story.table[r].bad ? "<tr class=\"bad\">" : "<tr>";
    for (const Column* column : shown) out += "<td>" + html(column->cell(story.table[r])) + "</td>";
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

std::string timeline(const Story& story, Language language) {
  if (story.timeline.empty()) return "";
  std::string out = fmt::format("<h2>{}</h2>\n<table>\n", html(Text{"Timeline (UTC)"}.in(language)));
  size_t first = story.timeline.size() > kMostEvents ? story.timeline.size() - kMostEvents : 0;
  std::string_view day;
  for (size_t i = first; i < story.timeline.size(); ++i) {
    const StoryEvent& event = story.timeline[i];
    std::string_view time = event.time;
    if (is_moment(time)) {
      if (time.substr(0, kDay) != day) {
        day = time.substr(0, kDay);
        out += fmt::format("<tr><th class=\"day\" colspan=\"2\">{}</th></tr>\n", html(day));
      }
      time = time.substr(kClockBegin, kClockBytes);
    }
    out += fmt::format("<tr{}><td class=\"time dim\">{}</td><td class=\"text\">{}</td></tr>\n", event.bad ? " class=\"bad\"" : "",
                       html(time), html(shown_lines(event.text)));
  }
  return out + "</table>\n";
}

}  // namespace

std::string html(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    base::Character c = base::first_character(text.substr(i));
    std::string_view bytes = text.substr(i, c.length);
    i += c.length;
    bool control = c.code_point < 0x20 ? bytes != "\n" && bytes != "\t" : c.code_point >= 0x7f && c.code_point < 0xa0;
    if (!c.valid || control) out += "\xef\xbf\xbd";
    else if (bytes == "&") out += "&amp;";
    else if (bytes == "<") out += "&lt;";
    else if (bytes == ">") out += "&gt;";
    else if (bytes == "\"") out += "&quot;";
    else if (bytes == "'") out += "&#39;";
    else out += bytes;
  }
  return out;
}

std::string story_page(const Story& story, Language language, size_t redacted) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n",
      language == Language::kChinese ? "zh-CN" : "en", html("phalanx " + story.id), kStyle);
  out += head(story, language) + verdict(story, language);
  out += chart(story.losses, Text{"Loss"}.in(language), Text{"over steps:"}.in(language));
  out += chart(story.step_times, Text{"Seconds per step"}.in(language), Text{"over steps:"}.in(language));
  out += ranks(story, language) + timeline(story, language);
  out += "<p class=\"dim\">" +
         html(tr(language,
                 "{} secrets were redacted from this report, recognised by name and form. Review it before you share it: a secret that "
                 "looks like an ordinary word cannot be recognised.",
                 redacted)) +
         "</p>\n";
  return out + "</body>\n</html>\n";
}

}  // namespace phalanx::view
