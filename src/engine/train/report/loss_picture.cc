#include "engine/train/report/loss_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/unicode.h"

namespace phalanx::engine::train {
namespace {

constexpr double kWidth = 900, kHeight = 480, kLeft = 76, kRight = 24, kTop = 64, kBottom = 52;
constexpr size_t kColumns = 800;   // about one for each unit of the drawing's width
constexpr double kLargest = 1e30;  // beyond it coordinates would lose all digits

// Escaped for XML, and without the control characters XML cannot hold at all; cut to what fits in a line.
std::string xml(std::string_view text) {
  std::string out;
  for (char c : base::printable(text, 120)) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

std::string number(double value) {
  if (value == 0) return "0";
  if (std::abs(value) >= 1e6 || std::abs(value) < 1e-3) return fmt::format("{:.4g}", value);
  return fmt::format("{:.6g}", value);
}

std::vector<LossPoint> finite(const std::vector<LossPoint>& points) {
  std::vector<LossPoint> kept;
  kept.reserve(points.size());
  for (const LossPoint& point : points)
    if (std::abs(point.step) < kLargest && std::abs(point.loss) < kLargest) kept.push_back(point);
  std::stable_sort(kept.begin(), kept.end(), [](const LossPoint& a, const LossPoint& b) { return a.step < b.step; });
  return kept;
}

// The mean of what came before, newer points counting more: over about a fiftieth of the curve.
std::vector<LossPoint> smoothed(const std::vector<LossPoint>& points) {
  const double keep = 1 - 1 / std::max(1.0, static_cast<double>(points.size()) / 50);
  std::vector<LossPoint> smooth = points;
  double sum = 0, weight = 0;
  for (LossPoint& point : smooth) {
    sum = keep * sum + point.loss;
    weight = keep * weight + 1;
    point.loss = sum / weight;
  }
  return smooth;
}

// The lowest and the highest point of each column, in order.
std::vector<LossPoint> thinned(const std::vector<LossPoint>& points) {
  if (points.size() <= 2 * kColumns) return points;
  std::vector<LossPoint> few;
  for (size_t column = 0; column < kColumns; ++column) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(column * points.size() / kColumns);
    const auto end = points.begin() + static_cast<std::ptrdiff_t>((column + 1) * points.size() / kColumns);
    auto [low, high] = std::minmax_element(begin, end, [](const LossPoint& a, const LossPoint& b) { return a.loss < b.loss; });
    few.push_back(*std::min(low, high));
    if (low != high) few.push_back(*std::max(low, high));
  }
  return few;
}

struct Frame {
  double x_low = 0, x_high = 1, y_low = 0, y_high = 1;
  double x(double step) const { return kLeft + (step - x_low) / (x_high - x_low) * (kWidth - kLeft - kRight); }
  double y(double loss) const { return kHeight - kBottom - (loss - y_low) / (y_high - y_low) * (kHeight - kTop - kBottom); }
};

void widen(double& low, double& high) {
  if (low < high) return;
  const double by = low == 0 ? 1 : std::abs(low) / 2;
  low -= by;
  high += by;
}

Frame frame_of(const std::vector<LossPoint>& training, const std::vector<LossPoint>& validation) {
  Frame frame{kLargest, -kLargest, kLargest, -kLargest};
  for (const auto* points : {&training, &validation})
    for (const LossPoint& point : *points) {
      frame.x_low = std::min(frame.x_low, point.step);
      frame.x_high = std::max(frame.x_high, point.step);
      frame.y_low = std::min(frame.y_low, point.loss);
      frame.y_high = std::max(frame.y_high, point.loss);
    }
  widen(frame.x_low, frame.x_high);
  widen(frame.y_low, frame.y_high);
  const double room = (frame.y_high - frame.y_low) * 0.04;
  frame.y_low -= room;
  frame.y_high += room;
  return frame;
}

std::string line(const std::vector<LossPoint>& points, const Frame& frame, std::string_view name) {
  if (points.size() < 2) return "";
  std::string out = fmt::format("<polyline class=\"{}\" points=\"", name);
  for (const LossPoint& point : points) out += fmt::format("{:.1f},{:.1f} ", frame.x(point.step), frame.y(point.loss));
  out.back() = '"';
  return out + "/>\n";
}

std::string dots(const std::vector<LossPoint>& points, const Frame& frame, std::string_view name, double radius) {
  std::string out;
  for (const LossPoint& point : points)
    out += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>\n", name, frame.x(point.step), frame.y(point.loss),
                       radius);
  return out;
}

std::string axes(const Frame& frame) {
  std::string out;
  const double right = kWidth - kRight, bottom = kHeight - kBottom;
  for (double tick : nice_ticks(frame.y_low, frame.y_high, 6)) {
    if (tick < frame.y_low || tick > frame.y_high) continue;
    const double y = frame.y(tick);
    out += fmt::format("<line class=\"grid\" x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\"/>\n", kLeft, y, right);
    out += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 8, y + 4, number(tick));
  }
  for (double tick : nice_ticks(frame.x_low, frame.x_high, 8)) {
    if (tick < frame.x_low || tick > frame.x_high) continue;
    const double x = frame.x(tick);
    out += fmt::format("<line class=\"axis\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>\n", x, bottom, bottom + 5);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x, bottom + 20, number(tick));
  }
  out += fmt::format("<polyline class=\"axis\" points=\"{0},{1} {0},{2} {3},{2}\"/>\n", kLeft, kTop, bottom, right);
  out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">step</text>\n", (kLeft + right) / 2, kHeight - 12);
  out += fmt::format("<text transform=\"translate(18 {}) rotate(-90)\" text-anchor=\"middle\">loss</text>\n", (kTop + bottom) / 2);
  return out;
}

std::string subtitle(const LossCurves& all, const std::vector<LossPoint>& training, const std::vector<LossPoint>& validation) {
  if (training.empty() && validation.empty()) return "no loss was logged";
  std::string text;
  if (!training.empty()) text += fmt::format("training {:.4g} at step {}", training.back().loss, number(training.back().step));
  if (!validation.empty()) {
    const auto best = std::min_element(validation.begin(), validation.end(), [](auto& a, auto& b) { return a.loss < b.loss; });
    text += fmt::format("{}validation at best {:.4g}, at step {}", text.empty() ? "" : "; ", best->loss, number(best->step));
  }
  const size_t lost = all.training.size() + all.validation.size() - training.size() - validation.size();
  return lost == 0 ? text : fmt::format("{}; {} not finite", text, lost);
}

std::string legend(bool validation) {
  const double x = kWidth - kRight - (validation ? 210 : 110);
  std::string out = fmt::format("<line class=\"mean\" x1=\"{}\" y1=\"22\" x2=\"{}\" y2=\"22\"/>\n", x, x + 24);
  out += fmt::format("<text x=\"{}\" y=\"26\">training</text>\n", x + 32);
  if (!validation) return out;
  out += fmt::format("<circle class=\"validation\" cx=\"{}\" cy=\"22\" r=\"3.5\"/>\n", x + 116);
  return out + fmt::format("<text x=\"{}\" y=\"26\">validation</text>\n", x + 128);
}

// Colours that stand out from white and from near black.
constexpr std::string_view kStyle =
    "<style>\n"
    "text{font:13px system-ui,sans-serif;fill:#444}.title{font-size:17px;font-weight:600;fill:#111}\n"
    ".ground{fill:#fff}.axis{stroke:#888;fill:none}.grid{stroke:#e4e4e4}\n"
    ".raw{stroke:#1f77b4;stroke-width:1;opacity:.35;fill:none}.mean{stroke:#1f77b4;stroke-width:2;fill:none}\n"
    ".point{fill:#1f77b4}.validation{fill:#d95f02}\n"
    "@media(prefers-color-scheme:dark){text{fill:#bbb}.title{fill:#eee}.ground{fill:#14171c}.grid{stroke:#2b3038}\n"
    ".raw,.mean{stroke:#6cb6ff}.point{fill:#6cb6ff}.validation{fill:#ff9d4d}}\n"
    "</style>\n";

}  // namespace

std::vector<double> nice_ticks(double low, double high, int count) {
  const double rough = (high - low) / std::max(count, 1);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * 0.999) {
      step = factor * power;
      break;
    }
  std::vector<double> ticks;
  const double first = std::floor(low / step), last = std::ceil(high / step);
  for (double i = first; i <= last && ticks.size() < 100; ++i) {
    ticks.push_back(i * step);
    if (i + 1 == i) break;  // a range so narrow that its numbers cannot be told apart
  }
  return ticks;
}

std::string loss_picture(const LossCurves& curves) {
  const std::vector<LossPoint> training = finite(curves.training), validation = finite(curves.validation);
  const Frame frame = frame_of(training, validation);
  std::string out =
      fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\">\n", kWidth, kHeight);
  out += kStyle;
  out += fmt::format("<rect class=\"ground\" width=\"{}\" height=\"{}\"/>\n", kWidth, kHeight);
  out += fmt::format("<text class=\"title\" x=\"{}\" y=\"26\">{}</text>\n", kLeft, xml(curves.title));
  out += fmt::format("<text x=\"{}\" y=\"46\">{}</text>\n", kLeft, subtitle(curves, training, validation));
  if (!training.empty() || !validation.empty()) out += axes(frame) + legend(!validation.empty());
  out += line(thinned(training), frame, "raw");
  out += line(thinned(smoothed(training)), frame, "mean");
  if (training.size() == 1) out += dots(training, frame, "point", 3);
  out += dots(thinned(validation), frame, "validation", 3.5);
  return out + "</svg>\n";
}

}  // namespace phalanx::engine::train
