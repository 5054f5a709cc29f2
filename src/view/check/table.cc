// The table of `phalanx check`. Two shapes:
//
//   alike, or too many kinds for columns          few kinds
//
//   gpu[01-08] (8 hosts)                                        gpu[01,03-08] (7 hosts)  gpu02
//     machine  Debian 12 · 64 CPUs                   machine    Debian 12 · 64 CPUs
//     GPUs     8× A100-SXM4-80GB                     GPUs       8× A100-SXM4-80GB       ≠ 7× A100-SXM4-80GB
//   gpu02
//   ≠ GPUs     7× A100-SXM4-80GB
//
// A kind is a set of hosts that are alike in every row. What differs is marked against the majority of its own row.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/unicode.h"
#include "view/check/layout.h"
#include "view/check/rows.h"
#include "view/check/view.h"

namespace phalanx::view {
namespace {

using Hosts = std::vector<size_t>;
using words::tr;

constexpr size_t kMostColumns = 6;
constexpr size_t kNarrowestColumn = 22;
constexpr size_t kGap = 2;

struct Row {
  CheckRow cells;
  std::string majority;  // the key of most hosts; empty: there is none, as many say this as that
  bool same = false;     // one key for all of whom it is known
  bool odd(size_t host) const { return !same && !cells.keys[host].empty() && cells.keys[host] != majority; }
};

Row judge(CheckRow cells, const Hosts& probed) {
  std::vector<std::pair<std::string, int>> counts;
  for (size_t h : probed) {
    if (cells.keys[h].empty()) continue;
    auto same = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == cells.keys[h]; });
    if (same == counts.end()) counts.emplace_back(cells.keys[h], 1);
    else ++same->second;
  }
  std::stable_sort(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Row row{std::move(cells), "", counts.size() <= 1};
  if (counts.size() == 1 || (counts.size() > 1 && counts[0].second > counts[1].second)) row.majority = counts[0].first;
  return row;
}

class Table {
 public:
  Table(const doctor::Situation& situation, const CheckStyle& style) : situation_(situation), style_(style), page_(style) {
    for (size_t h = 0; h < situation.hosts.size(); ++h)
      if (situation.hosts[h].probed) probed_.push_back(h);
    for (CheckRow& cells : check_rows(situation, style.language)) rows_.push_back(judge(std::move(cells), probed_));
    std::map<std::vector<std::string>, size_t> seen;
    for (size_t h : probed_) {
      std::vector<std::string> all;
      for (const Row& row : rows_) all.push_back(row.cells.keys[h]);
      auto [place, fresh] = seen.emplace(std::move(all), kinds_.size());
      if (fresh) kinds_.emplace_back();
      kinds_[place->second].push_back(h);
    }
    std::stable_sort(kinds_.begin(), kinds_.end(), [](const Hosts& a, const Hosts& b) { return a.size() > b.size(); });
    for (const Row& row : rows_) label_columns_ = std::max(label_columns_, base::display_width(row.cells.label) + kGap + kGap);
  }

  std::string text() {
    if (probed_.empty() || rows_.empty()) return "";
    size_t room = style_.columns - std::min(style_.columns, label_columns_);
    bool columns = kinds_.size() > 1 && kinds_.size() <= kMostColumns && room / kinds_.size() >= kNarrowestColumn + kGap;
    if (columns) as_columns(room);
    else as_blocks();
    return page_.take();
  }

 private:
  std::string heading(const Hosts& hosts) const {
    std::vector<std::string> names;
    for (size_t h : hosts) names.push_back(situation_.hosts[h].name);
    std::string text = fold_list(names);
    if (hosts.size() > 1) text += tr(style_.language, " ({} hosts)", hosts.size());
    return text;
  }
  // The hosts of `some` of whom the row knows what `key` says (any, if empty).
  static Hosts knowing(const Row& row, const Hosts& some, const std::string& key) {
    Hosts hosts;
    for (size_t h : some)
      if (key.empty() ? !row.cells.keys[h].empty() : row.cells.keys[h] == key) hosts.push_back(h);
    return hosts;
  }
  std::string label(const Row& row, bool odd) const { return (odd ? kOddMark + std::string(" ") : "  ") + row.cells.label; }

  void as_columns(size_t room) {
    std::vector<size_t> widths = column_widths(room);
    std::vector<Cell> cells;
    for (const Hosts& kind : kinds_) cells.push_back({heading(kind), Look::kHeading});
    page_.row("", label_columns_, cells, widths);
    for (const Row& row : rows_) {
      if (row.same) {
        std::string text = row.cells.text(knowing(row, probed_, ""));
        if (!text.empty()) page_.row(label(row, false), label_columns_, {{text, Look::kPlain}}, {room});
        continue;
      }
      cells.clear();
      for (const Hosts& kind : kinds_) cells.push_back(cell(row, kind));
      page_.row(label(row, false), label_columns_, cells, widths);
    }
  }
  Cell cell(const Row& row, const Hosts& kind) const {
    if (row.cells.keys[kind[0]].empty()) return {"–", Look::kPlain};
    bool odd = row.odd(kind[0]);
    return {(odd ? kOddMark + std::string(" ") : "") + row.cells.text(kind), odd ? Look::kOdd : Look::kPlain};
  }
  // Every column gets its share, and what it does not need goes to those that need more.
  std::vector<size_t> column_widths(size_t room) const {
    std::vector<size_t> needs;
    for (const Hosts& kind : kinds_) {
      size_t need = base::display_width(heading(kind));
      for (const Row& row : rows_)
        if (!row.same) need = std::max(need, base::display_width(cell(row, kind).text));
      needs.push_back(need + kGap);
    }
    return share(needs, room);
  }

  void as_blocks() {
    Hosts odd_hosts;
    for (size_t h : probed_)
      if (std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) { return row.odd(h); })) odd_hosts.push_back(h);
    std::string most = odd_hosts.empty() ? "" : tr(style_.language, ": most hosts have");
    page_.row("", 0, {{heading(probed_) + most, Look::kHeading}}, {style_.columns});
    size_t room = style_.columns - label_columns_;
    for (const Row& row : rows_) {
      Hosts hosts = knowing(row, probed_, row.same ? "" : row.majority);
      std::string text = row.same || !row.majority.empty() ? row.cells.text(hosts) : tr(style_.language, "all differ");
      if (!text.empty()) page_.row(label(row, false), label_columns_, {{text, Look::kPlain}}, {room});
    }
    // Kinds that are odd in the same way are told together.
    std::vector<std::pair<std::vector<std::string>, Hosts>> odd_kinds;
    for (size_t h : odd_hosts) {
      std::vector<std::string> differs;
      for (const Row& row : rows_) differs.push_back(row.odd(h) ? row.cells.keys[h] : "");
      auto same = std::find_if(odd_kinds.begin(), odd_kinds.end(), [&](const auto& kind) { return kind.first == differs; });
      if (same == odd_kinds.end()) odd_kinds.push_back({differs, {h}});
      else same->second.push_back(h);
    }
    for (const auto& [differs, hosts] : odd_kinds) {
      page_.row("", 0, {{heading(hosts), Look::kHeading}}, {style_.columns});
      for (const Row& row : rows_)
        if (row.odd(hosts[0])) page_.row(label(row, true), label_columns_, {{row.cells.text(hosts), Look::kOdd}}, {room});
    }
  }

  const doctor::Situation& situation_;
  const CheckStyle& style_;
  Page page_;
  Hosts probed_;
  std::vector<Row> rows_;
  std::vector<Hosts> kinds_;  // the largest first
  size_t label_columns_ = 0;
};

}  // namespace

std::string check_table(const doctor::Situation& situation, const CheckStyle& style) { return Table(situation, style).text(); }

}  // namespace phalanx::view
