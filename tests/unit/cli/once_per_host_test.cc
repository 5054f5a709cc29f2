#include "cli/once_per_host.h"

#include <gtest/gtest.h>

#include "cli/end_line.h"
#include "cli/records/named_run.h"

namespace phalanx::cli {
namespace {

HostAnswer answer(std::string host, std::string output, std::optional<int> code) {
  return {std::move(host), std::move(output), false, code};
}

TEST(Exec, HostsThatAgreeAreShownOnce) {
  const std::vector<HostAnswer> hosts = {answer("h1", "same\n", 0), answer("h2", "other\n", 0), answer("h3", "same\n", 0),
                                         answer("h4", "same\n", 2), answer("h5", "", std::nullopt)};
  EXPECT_EQ(folded_answers(hosts, base::Language::kEnglish),
            "h[1,3]\n  same\nh2\n  other\nh4: exit code 2\n  same\nh5: stopped before it ended\n");
  EXPECT_EQ(exit_code_of(hosts), 2) << "the first that is not 0";
  EXPECT_EQ(exit_code_of({hosts[0], hosts[1]}), 0);
  EXPECT_EQ(exit_code_of({hosts[4]}), 130);
}

TEST(RunNames, NoNameCouldBeAnId) {
  for (const char* name : {"llama-7b", "try_2", "a", "7b.1", "Z"}) EXPECT_TRUE(check_run_name(name).ok()) << name;
  for (const char* name : {"latest", "2026", "a3f9", "20261121-073102-a3f9", "-x", ".x", "a b", "a/b", "", "20261121-07"})
    EXPECT_FALSE(check_run_name(name).ok()) << name;
  EXPECT_FALSE(check_run_name(std::string(65, 'x')).ok());
}

TEST(EndLine, HasRanksTimeRestartsAndTheLastFigures) {
  job::State state;
  state.plan = job::Plan{{{"h1", 0, 2, "", {}, ""}, {"h2", 2, 2, "", {}, ""}}, 4};
  job::Verdict done;
  done.kind = job::Verdict::Kind::kDone;
  auto line = [&](const base::Json& progress, base::Language language = base::Language::kEnglish) {
    return end_line(state, done, progress, std::chrono::milliseconds(3200), language);
  };
  EXPECT_EQ(line(nullptr), "4 ranks on 2 hosts finished in 3.2 s");
  done.attempt = 1;
  EXPECT_EQ(line({{"step", 300}, {"total", 300}, {"loss", 16.72}}),
            "4 ranks on 2 hosts finished in 3.2 s, after 1 restart; step 300/300, loss 16.72");
  EXPECT_EQ(line(nullptr, base::Language::kChinese), "4 个 rank（2 台主机）已完成，用时 3.2 s，重启 1 次");
  done.kind = job::Verdict::Kind::kRankFailed;
  EXPECT_EQ(line(nullptr), "");
}

}  // namespace
}  // namespace phalanx::cli
