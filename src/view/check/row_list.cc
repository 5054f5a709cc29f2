#include "view/check/row_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "base/unicode.h"

namespace phalanx::view {
namespace {

constexpr size_t kLongestText = 120;  // bytes of one thing a host says

}  // namespace

void RowList::plain(words::Text label, const std::function<std::string(const doctor::HostView&)>& text) {
  std::vector<std::string> texts = each(text);
  add(label, texts, [texts](const Hosts& hosts) { return texts[hosts[0]]; });
}

void RowList::add(words::Text label, std::vector<std::string> keys, std::function<std::string(const Hosts&)> text) {
  if (std::all_of(keys.begin(), keys.end(), [](const std::string& key) { return key.empty(); })) return;
  rows_.push_back({std::string(label.in(language_)), std::move(keys), std::move(text)});
}

std::vector<std::string> RowList::each(const std::function<std::string(const doctor::HostView&)>& text) const {
  std::vector<std::string> texts;
  for (const doctor::HostView& host : situation_.hosts) texts.push_back(host.probed ? text(host) : "");
  return texts;
}

std::string join_parts(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts)
    if (!part.empty()) out += (out.empty() ? "" : " · ") + part;
  return out;
}

std::string bytes_text(int64_t count) { return base::format_bytes(static_cast<uint64_t>(std::max<int64_t>(0, count))); }

std::string safe_text(const std::string& text) { return base::printable(text, kLongestText); }

std::string speed_text(double mbps) {
  if (mbps <= 0) return "";
  return mbps < 1000 ? fmt::format("{:.3g} Mb/s", mbps) : fmt::format("{:.3g} Gb/s", mbps / 1000);
}

std::vector<std::string> about_keys(const std::vector<int64_t>& values) {
  std::vector<int64_t> known;
  for (int64_t value : values)
    if (value > 0) known.push_back(value);
  std::sort(known.begin(), known.end());
  int64_t median = known.empty() ? 0 : known[(known.size() - 1) / 2];
  std::vector<std::string> keys;
  for (int64_t value : values) keys.push_back(value <= 0 ? "" : std::abs(value - median) <= median / 8 ? "about" : bytes_text(value));
  return keys;
}

std::string bytes_span(const Hosts& hosts, const std::vector<int64_t>& values) {
  auto [least, most] = std::minmax_element(hosts.begin(), hosts.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::string low = bytes_text(values[*least]), high = bytes_text(values[*most]);
  return low == high ? low : low + "–" + high;
}

std::string counted(const std::vector<std::string>& words) {
  std::vector<std::pair<std::string, int>> counts;
  for (const std::string& word : words) {
    auto same = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == word; });
    if (same == counts.end()) counts.emplace_back(word, 1);
    else ++same->second;
  }
  std::string out;
  for (const auto& [word, count] : counts) out += fmt::format("{}{}× {}", out.empty() ? "" : ", ", count, word);
  return out;
}

}  // namespace phalanx::view
