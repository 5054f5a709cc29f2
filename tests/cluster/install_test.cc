// docs/guides/install.md against the program: nothing lies where the page does not say so, and its commands leave nothing.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "base/text.h"
#include "launcher_fixture.h"

namespace {

using namespace phalanx;
using namespace phalanx::testbed;
using namespace std::chrono_literals;

class Install : public Launcher {
 protected:
  // Everything a user can leave on a host, without the testbed's own.
  std::set<std::string> files(const std::string& host) {
    std::set<std::string> all;
    const std::string found = say(host,
                                  "find /root /tmp /var/tmp /dev/shm /run /etc -xdev \\( -path /run/testbed -o -path /root/.ssh \\) "
                                  "-prune -o -print 2> /dev/null || true");
    for (std::string_view line : base::split_lines(found)) all.emplace(line);
    return all;
  }
  std::set<std::string> made(const std::string& host) {
    std::set<std::string> added, now = files(host);
    std::set_difference(now.begin(), now.end(), before_.at(host).begin(), before_.at(host).end(), std::inserter(added, added.end()));
    return added;
  }
  std::map<std::string, std::set<std::string>> before_;
};

// The last block of the section "Remove", for other hosts.
std::string commands_to_remove() {
  std::ifstream in(TESTBED_SOURCE_DIR "/docs/guides/install.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  const size_t section = page.find("## Remove\n"), begin = page.find("```sh\n", section), end = page.find("```\n", begin + 6);
  EXPECT_NE(end, std::string::npos);
  std::string text = base::replace_all(page.substr(begin + 6, end - begin - 6), "gpu01 gpu02", "h1 h2");
  EXPECT_NE(text.find("for host in h1 h2"), std::string::npos) << text;
  return text;
}

bool below_one_of(const std::string& path, const Words& folders) {
  return std::any_of(folders.begin(), folders.end(),
                     [&](const std::string& folder) { return path == folder || path.starts_with(folder + "/"); });
}

TEST_F(Install, WhatLiesWhereIsOnThePageAndItsCommandsRemoveIt) {
  start();
  for (const char* host : {"ctl", "h1", "h2"}) before_[host] = files(host);
  const std::string phalanx = std::string(PHALANX_PROGRAM);
  for (const std::string& arguments :
       {std::string("run -H h1,h2 -- true"), std::string("run -- true"), std::string("check h1,h2"),
        std::string("run -H h1,h2 -- sh -c 'touch $PHALANX_ERROR_FILE; exit 1'"), std::string("run -d -H h1,h2 -- sleep 0.2"),
        std::string("wait"), std::string("why"), std::string("exec -H h1,h2 -- true")})
    (void)say("ctl", "cd /tmp && " + phalanx + " " + arguments + " > /dev/null 2>&1 || true");
  // "~" of the page is /root here, and neither XDG_STATE_HOME nor XDG_CACHE_HOME nor XDG_RUNTIME_DIR is set.
  const std::set<std::string> parents = {"/root/.local", "/root/.local/state", "/root/.cache"};
  for (const char* host : {"ctl", "h1", "h2"}) {
    const bool launching = std::string_view(host) == "ctl";
    const Words named = launching ? Words{"/root/.local/state/phalanx", "/root/.cache/phalanx"} : Words{"/root/.cache/phalanx"};
    const std::set<std::string> added = made(host);
    for (const std::string& folder : named) EXPECT_TRUE(added.contains(folder)) << host << ": " << folder;
    for (const std::string& path : added)
      EXPECT_TRUE(parents.contains(path) || below_one_of(path, named)) << host << ": the page does not name " << path;
  }
  EXPECT_EQ(say("ctl", "ls -d ~/.local/state/phalanx/runs/2* | wc -l"), "4\n");
  EXPECT_HAS(say("ctl", "ls ~/.cache/phalanx/ssh ~/.cache/phalanx/checks"), ".json");
  (void)say("h1", "test -x ~/.cache/phalanx/*/phalanx");

  const std::string removed = say("ctl", "set -e; PATH=$(dirname " + phalanx + "):$PATH\n" + commands_to_remove());
  EXPECT_HAS(removed, "ssh connection");
  for (const char* host : {"ctl", "h1", "h2"})
    for (const std::string& path : made(host)) EXPECT_TRUE(parents.contains(path)) << host << ": " << path << " is left";
  EXPECT_EQ(say("ctl", "pgrep -x ssh || true"), "") << "no ssh connection is left open";
  EXPECT_EQ(leftovers(2s), "");
  // And it starts again as on the first day.
  EXPECT_EQ(run_now({"-H", "h1,h2", "--", "true"}).exit_code, 0);
}

}  // namespace
