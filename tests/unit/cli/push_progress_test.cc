#include <gtest/gtest.h>

#include "cli/push/progress.h"
#include "cli/push/push_hosts.h"

namespace phalanx::cli {
namespace {

constexpr base::Language kEnglish = base::Language::kEnglish;

TEST(PushProgress, HostsThatAreEquallyFarStandTogether) {
  const std::string names[] = {"h1", "h2", "h3", "h4", "h5"};
  const std::vector<job::CopyState> hosts = {
      {names[0], 500, 1000}, {names[1], 505, 1000}, {names[2], 1000, 1000, true}, {names[3]}, {names[4], 0, 0, true, true}};
  EXPECT_EQ(PushProgress::line(hosts, 100, kEnglish),
            "h[1-2] 50%, h3 done, h4 comparing, h5 failed; 1.96 KiB of 2.93 KiB sent, 100 B/s, 10 s left");
  EXPECT_EQ(PushProgress::line({{names[0], 5, 5}}, 0, kEnglish), "h1 finishing; 5 B of 5 B sent");
}

TEST(PushHosts, OnlyWhatMayEndByItselfIsAdvisedToBeTriedAgain) {
  std::vector<job::CopiedHost> hosts(3);
  for (size_t h = 0; h < hosts.size(); ++h) hosts[h].name = "h" + std::to_string(h + 1);
  hosts[0].error = base::fail(base::ErrorKind::kUnreachable, "lost contact with the host");
  hosts[1].error = base::fail(base::ErrorKind::kUnfit, "the disk is full");
  hosts[2].error = base::fail(base::ErrorKind::kUnfit, "others may write to it").with_hint("choose another directory");
  const std::vector<base::Error> errors = folded_errors(hosts);
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_EQ(errors[0].hint, "run the same command again; files that have arrived are not sent again");
  EXPECT_EQ(errors[1].hint, "");
  EXPECT_EQ(errors[2].hint, "choose another directory");
}

TEST(PushProgress, TheTableFoldsEqualHostsAndNamesWhatStayed) {
  std::vector<job::CopiedHost> hosts(4);
  for (size_t h = 0; h < hosts.size(); ++h) {
    hosts[h].name = "h" + std::to_string(h + 1);
    hosts[h].path = "/data";
    hosts[h].files = 2;
    hosts[h].bytes = 1024;
  }
  hosts[0].took = hosts[1].took = std::chrono::seconds(2);
  hosts[1].took = std::chrono::seconds(1);
  hosts[2].files = hosts[2].bytes = 0;
  hosts[2].stayed = 1;
  hosts[3].files = hosts[3].bytes = 0;
  hosts[3].is_source = true;
  EXPECT_EQ(push_table(hosts, kEnglish),
            "h[1-2]: 2 files, 1 KiB sent in 2 s (512 B/s): /data\nh3: everything was there; files that are gone here: 1 kept: /data\n"
            "h4: this is the directory that is pushed; nothing to do: /data\n");
}

}  // namespace
}  // namespace phalanx::cli
