// Accepted findings: marked, counted apart, and split by host.
#include "doctor/accepted.h"

#include <gtest/gtest.h>

namespace phalanx::doctor {
namespace {

constexpr Row::Check* kNoCheck = nullptr;
constexpr Row kPort{"RDZV-PORT-TAKEN", Severity::kError, kNoCheck};
constexpr Row kShm{"FS-SHM-SMALL", Severity::kWarning, kNoCheck};
constexpr Row kScript{"CMD-SCRIPT-MISSING", Severity::kError, kNoCheck};

Situation three_hosts() {
  Situation s;
  s.hosts.resize(3);
  for (size_t h = 0; h < 3; ++h) s.hosts[h].name = "h" + std::to_string(h + 1);
  return s;
}

Examination found() {
  Examination e;
  e.findings.push_back({&kPort, {0}, {"port", ""}, "kill 1", "h1"});
  e.findings.push_back({&kScript, {}, {"no script", ""}, "", ""});
  e.findings.push_back({&kShm, {0, 1, 2}, {"64 MiB", ""}, "", ""});
  count_again(e);
  return e;
}

std::string told(const Examination& e) {
  std::string text;
  for (const Finding& f : e.findings) {
    text += f.accepted ? "accepted " : "";
    text += f.row->code;
    for (size_t h : f.hosts) text += " h" + std::to_string(h + 1);
    text += "; ";
  }
  return text + std::to_string(e.errors) + " " + std::to_string(e.warnings) + " " + std::to_string(e.accepted);
}

std::string after(const std::vector<Acceptance>& accepted) {
  Examination e = found();
  accept(three_hosts(), accepted, e);
  return told(e);
}

TEST(Accepted, NothingIsAcceptedUnasked) {
  EXPECT_EQ(after({}), "RDZV-PORT-TAKEN h1; CMD-SCRIPT-MISSING; FS-SHM-SMALL h1 h2 h3; 2 1 0");
  EXPECT_EQ(after({{"NET-LOSS", {}}}), "RDZV-PORT-TAKEN h1; CMD-SCRIPT-MISSING; FS-SHM-SMALL h1 h2 h3; 2 1 0");
  EXPECT_EQ(after({{"FS-SHM", {}}}), "RDZV-PORT-TAKEN h1; CMD-SCRIPT-MISSING; FS-SHM-SMALL h1 h2 h3; 2 1 0") << "no prefixes";
}

TEST(Accepted, OnAllHostsOrOnSome) {
  EXPECT_EQ(after({{"RDZV-PORT-TAKEN", {}}}), "CMD-SCRIPT-MISSING; FS-SHM-SMALL h1 h2 h3; accepted RDZV-PORT-TAKEN h1; 1 1 1");
  EXPECT_EQ(after({{"FS-SHM-SMALL", {"h1", "h3", "elsewhere"}}}),
            "RDZV-PORT-TAKEN h1; CMD-SCRIPT-MISSING; FS-SHM-SMALL h2; accepted FS-SHM-SMALL h1 h3; 2 1 1");
  EXPECT_EQ(after({{"FS-SHM-SMALL", {"h1"}}, {"FS-SHM-SMALL", {"h2", "h3"}}}),
            "RDZV-PORT-TAKEN h1; CMD-SCRIPT-MISSING; accepted FS-SHM-SMALL h1 h2 h3; 2 0 1");
  EXPECT_EQ(after({{"RDZV-PORT-TAKEN", {"h2"}}}), "RDZV-PORT-TAKEN h1; CMD-SCRIPT-MISSING; FS-SHM-SMALL h1 h2 h3; 2 1 0");
}

TEST(Accepted, AFindingOfTheJobIsOfNoHost) {
  EXPECT_EQ(after({{"CMD-SCRIPT-MISSING", {"h1"}}}), "RDZV-PORT-TAKEN h1; CMD-SCRIPT-MISSING; FS-SHM-SMALL h1 h2 h3; 2 1 0");
  EXPECT_EQ(after({{"CMD-SCRIPT-MISSING", {}}}), "RDZV-PORT-TAKEN h1; FS-SHM-SMALL h1 h2 h3; accepted CMD-SCRIPT-MISSING; 1 1 1");
}

}  // namespace
}  // namespace phalanx::doctor
