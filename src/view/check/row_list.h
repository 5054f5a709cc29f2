// Pieces that the rows of `phalanx check` are made of (view/check/rows.cc, view/check/rows_job.cc).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/language.h"
#include "doctor/situation.h"
#include "view/check/rows.h"
#include "words/message.h"

namespace phalanx::view {

using Hosts = std::vector<size_t>;

// Collects rows. The texts it is given outlive it: they must not refer to it.
class RowList {
 public:
  RowList(const doctor::Situation& situation, base::Language language) : situation_(situation), language_(language) {}

  // A row whose cells say all of what is compared: the text is the key.
  void plain(words::Text label, const std::function<std::string(const doctor::HostView&)>& text);
  // Left out when every key is empty.
  void add(words::Text label, std::vector<std::string> keys, std::function<std::string(const Hosts&)> text);
  // "" for hosts that were not probed.
  std::vector<std::string> each(const std::function<std::string(const doctor::HostView&)>& text) const;

  const doctor::Situation& situation() const { return situation_; }
  base::Language language() const { return language_; }
  std::vector<CheckRow> take() { return std::move(rows_); }

 private:
  const doctor::Situation& situation_;
  base::Language language_;
  std::vector<CheckRow> rows_;
};

// Those that are not empty, with " · " between.
std::string join_parts(const std::vector<std::string>& parts);
std::string bytes_text(int64_t count);
// What a host says of itself is shown, never obeyed: printable, and not long.
std::string safe_text(const std::string& text);
// "50 Gb/s"; empty for 0.
std::string speed_text(double mbps);
// Sizes that are about the same (within an eighth of the median) have one key, others each their own; 0 has none.
std::vector<std::string> about_keys(const std::vector<int64_t>& values);
// "503 GiB", or the least and the most where they read differently.
std::string bytes_span(const Hosts& hosts, const std::vector<int64_t>& values);
// Equal words counted, in the order in which they first come: "8× A100-SXM4-80GB, 1× GT 1030 2 GiB".
std::string counted(const std::vector<std::string>& words);

void add_software(RowList& rows);
void add_storage(RowList& rows);
void add_limits(RowList& rows);
void add_clock(RowList& rows);
void add_gaps(RowList& rows);

}  // namespace phalanx::view
