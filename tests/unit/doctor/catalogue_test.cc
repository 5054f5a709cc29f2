// The catalogue as a whole: every row has words in both languages, a case that triggers it and one that must not; healthy
// clusters are left in peace.
#include "doctor/catalogue.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/text.h"
#include "cases.h"
#include "doctor/commands.h"

namespace phalanx::doctor::test {
namespace {

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (auto* cases : {gpu_cases, visibility_cases, network_cases, infiniband_cases, nccl_cases, rendezvous_cases, software_cases,
                      storage_cases, time_cases, limits_cases, process_cases, container_cases, command_cases, data_cases, speed_cases})
    for (Case& c : cases()) all.push_back(std::move(c));
  return all;
}

std::string told(const Examination& e) {
  std::string text;
  for (const Finding& f : e.findings) text += std::string(f.row->code) + ": " + f.evidence.english + "\n";
  return text;
}

bool names(const Examination& e, std::string_view code) {
  for (const Finding& f : e.findings)
    if (f.row->code == code) return true;
  return false;
}

// Every check has its page, and every page in codes/checks its check.
TEST(Catalogue, ChecksAndPagesAreOneToOne) {
  std::set<std::string_view> checked;
  for (const Row* row : catalogue()) {
    SCOPED_TRACE(row->code);
    EXPECT_TRUE(checked.insert(row->code).second) << "two rows have this code";
    for (char c : row->code) EXPECT_TRUE((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-');
    ASSERT_NE(row->check == nullptr, row->check_host == nullptr);
    ASSERT_NE(codes::find(row->code), nullptr);
    EXPECT_EQ(row->page().group->part, codes::Part::kChecks);
  }
  for (const codes::Code& code : codes::all())
    EXPECT_EQ(checked.count(code.name) == 1, code.group->part == codes::Part::kChecks) << code.name;
}

TEST(Catalogue, EveryRowHasACaseThatTriggersItAndOneThatMustNot) {
  std::map<std::string_view, std::pair<int, int>> counts;
  for (const Case& c : all_cases()) {
    EXPECT_NE(find_row(c.code), nullptr) << c.code << " is no row";
    ++(c.triggers ? counts[c.code].first : counts[c.code].second);
  }
  for (const Row* row : catalogue()) {
    EXPECT_GT(counts[row->code].first, 0) << row->code << " has no case that triggers it";
    EXPECT_GT(counts[row->code].second, 0) << row->code << " has no case that must not";
  }
}

TEST(Catalogue, CasesDoWhatTheySay) {
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(std::string(c.code) + ": " + std::string(c.what));
    Examination e = examine(c.make());
    EXPECT_EQ(names(e, c.code), c.triggers) << told(e);
    for (const Finding& f : e.findings) {
      EXPECT_FALSE(f.evidence.english.empty()) << f.row->code;
      EXPECT_FALSE(f.evidence.chinese.empty()) << f.row->code;
    }
  }
}

// What destroys is printed only with the object that was seen, and with its cost.
TEST(Catalogue, EveryCommandOfAFindingIsKnown) {
  for (const Case& c : all_cases()) {
    for (const Finding& f : examine(c.make()).findings) {
      for (std::string_view line : base::split_lines(f.fix)) {
        SCOPED_TRACE(std::string(f.row->code) + ": " + std::string(line));
        std::optional<CommandEffect> effect = effect_of(line);
        ASSERT_TRUE(effect);
        EXPECT_FALSE(has_placeholder(line));
        EXPECT_TRUE(effect->effect != Effect::kDestroys || with_cost(line, base::Language::kEnglish).find("   # ") != std::string::npos);
      }
      for (base::Language language : {base::Language::kEnglish, base::Language::kChinese}) {
        std::string printed = command_of(f, language);
        EXPECT_FALSE(has_placeholder(printed)) << f.row->code << ": " << printed;
      }
    }
  }
}

TEST(Catalogue, EveryCommandOfAPageIsKnownAndNamesNoMachine) {
  for (const codes::Code& code : codes::all())
    for (base::Language language : {base::Language::kEnglish, base::Language::kChinese})
      for (std::string_view line : base::split_lines(code.fix.in(language))) {
        if (!line.starts_with("$ ")) continue;
        EXPECT_TRUE(effect_of(line.substr(2))) << code.name << ": " << line;
        for (std::string_view invented : {"gpu0", "192.168.", "10.1.", "4711", "12345", "eth0", "/data/", "mlx5_0"})
          EXPECT_EQ(line.find(invented), std::string_view::npos) << code.name << ": " << line;
      }
}

// Only a block of commands is listed in docs/commands.md, so nothing that destroys may stand between them.
TEST(Catalogue, NoSentenceOfAPageAdvisesToDestroy) {
  for (const codes::Code& code : codes::all())
    for (base::Language language : {base::Language::kEnglish, base::Language::kChinese})
      for (const base::Bilingual& text : {code.question, code.why, code.fix})
        for (std::string_view line : base::split_lines(text.in(language))) {
          if (line.starts_with("$ ")) continue;
          std::vector<std::string_view> spans = base::split(line, '`');
          for (size_t i = 1; i < spans.size(); i += 2) {
            std::optional<CommandEffect> effect = effect_of(spans[i]);
            EXPECT_FALSE(effect && effect->effect == Effect::kDestroys) << code.name << ": " << spans[i];
          }
        }
}

TEST(Catalogue, HealthyClustersAreLeftInPeace) {
  for (auto* make : {plain_ethernet, bond_infiniband, docker_host_network, single_machine}) {
    Examination e = examine(make());
    EXPECT_EQ(e.errors, 0) << told(e);
    EXPECT_EQ(e.warnings, 0) << told(e);
  }
}

// A host that could not be probed, or of which nothing is known, must not crash a check nor be judged.
TEST(Catalogue, NothingKnownIsNothingSaidOfIt) {
  Situation s;
  s.hosts.resize(3);
  for (size_t h = 0; h < 3; ++h) s.hosts[h].name = "h" + std::to_string(h + 1);
  s.hosts[1].probed = true;  // probed, and every fact empty
  for (const Finding& f : examine(s).findings)
    for (size_t host : f.hosts) EXPECT_NE(host, 0u) << f.row->code << ": " << f.evidence.english;
}

TEST(Catalogue, EqualHostsFoldIntoOneFinding) {
  Situation s = plain_ethernet();
  for (HostView& host : s.hosts) host.facts.limits.nofile = 256;
  if (!find_row("LIM-NOFILE")) GTEST_SKIP() << "no row LIM-NOFILE";
  Examination e = examine(s, {"LIM-NOFILE"});
  ASSERT_EQ(e.findings.size(), 1u);
  EXPECT_EQ(e.findings[0].hosts.size(), 4u);
}

}  // namespace
}  // namespace phalanx::doctor::test
