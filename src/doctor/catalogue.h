// The checks: one row per thing that can be found before a start, with its code, how grave it is, and the function that looks. The words
// are the code's page (codes/code.h).
//
// A check is a pure function of a situation. It adds one finding per host or set of hosts; equal evidence is folded later.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/language.h"
#include "codes/code.h"
#include "doctor/finding.h"
#include "doctor/situation.h"

namespace phalanx::doctor {

// Where a check puts what it finds.
class Findings {
 public:
  Findings(const Row& row, std::vector<Finding>& out) : row_(row), out_(out) {}
  void on(size_t host, Words evidence, std::string fix = "") { out_.push_back({&row_, {host}, std::move(evidence), std::move(fix), ""}); }
  void on(std::vector<size_t> hosts, Words evidence, std::string fix = "", std::string where = "") {
    out_.push_back({&row_, std::move(hosts), std::move(evidence), std::move(fix), std::move(where)});
  }
  void job(Words evidence, std::string fix = "") { out_.push_back({&row_, {}, std::move(evidence), std::move(fix), ""}); }
  const Row& row() const { return row_; }

 private:
  const Row& row_;
  std::vector<Finding>& out_;
};

// A check looks at everything at once, or at one host after another: then it is asked for every host that was probed.
struct Row {
  using Check = void(const Situation& situation, Findings& findings);
  using HostCheck = void(const Situation& situation, size_t h, const HostView& host, Findings& findings);
  constexpr Row(std::string_view its_code, Severity how_grave, Check* whole) : code(its_code), severity(how_grave), check(whole) {}
  constexpr Row(std::string_view its_code, Severity how_grave, HostCheck* each) : code(its_code), severity(how_grave), check_host(each) {}

  void look(const Situation& situation, Findings& findings) const;
  const codes::Code& page() const { return codes::get(code); }

  std::string_view code;  // "NET-WRONG-IFACE"
  Severity severity;
  Check* check = nullptr;  // one of the two
  HostCheck* check_host = nullptr;
};

// All rows, group by group: a code's prefix is its group's (GPU-, VIS-, NET-, IB-, NCCL-, RDZV-, ENV-, FS-, TIME-, LIM-, PROC-, CMD-,
// DATA-, PERF-). A group is a folder of doctor/checks/.
std::vector<const Row*> catalogue();
const Row* find_row(std::string_view code);  // case-insensitive; null if there is none

}  // namespace phalanx::doctor
