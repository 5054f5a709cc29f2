// What the tests of the real launcher share: a cluster with one bystander process per host, `phalanx run` typed on ctl, and the
// question what is left over afterwards.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster.h"

namespace phalanx::testbed {

using Words = std::vector<std::string>;

Words with(Words words, const Words& more);  // both, one after the other

class Launcher : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;  // every bystander still lives

  void start(Options options = {});
  Cluster& cluster() { return *cluster_; }

  // `phalanx run args…`, typed on ctl in /tmp.
  static Command run(const Words& args);
  Outcome run_now(const Words& args, milliseconds deadline = milliseconds(30'000));
  Process run_later(const Words& args);
  // One line of sh on a host, which must succeed; what it printed.
  std::string say(const std::string& host, const std::string& script);
  static std::string script(const std::string& name) { return TESTBED_PROJECT "/tests/cluster/scripts/" + name; }

  // A new folder in the build's, which all hosts share; a test's own.
  struct Shared {
    std::string here, on_hosts;  // its path on this machine and on theirs
  };
  static Shared shared_folder(const std::string& name);

  // "h2: 123 phalanx-agent …", for every process on any host that a run has left: not the bystanders, sshd's own processes and
  // shared ssh connections. Waits for them to end for as long as `most`.
  std::string leftovers(milliseconds most = milliseconds(0));
  std::string leftovers_on(const std::string& host, milliseconds most = milliseconds(0));
  // From here on the host's bystander need not live: the test switches the host off.
  void forget_bystander(const std::string& host) { bystanders_.erase(host); }
  // The processes of a host that are called `name`.
  std::vector<HostProcess> named(const std::string& host, const std::string& name);

 private:
  std::unique_ptr<Cluster> cluster_;
  std::map<std::string, Process> bystanders_;
};

// Ranks that run scripts/obey.sh: they wait to be told.
class Obeying : public Launcher {
 protected:
  // `hosts` as for -H; one rank per host unless `args` or the hosts say otherwise. Returns when every rank is ready.
  void launch(const std::string& hosts, const Words& args = {}, const std::vector<std::string>& host_of_rank = {"h1", "h2"});
  void tell(int rank, const std::string& line);  // and forget what comes of it
  Process& phalanx() { return *phalanx_; }
  void TearDown() override;

  // The clock of a fault: from here on `ended` counts.
  void fault() { fault_at_ = std::chrono::steady_clock::now(); }
  struct Ended {
    Outcome outcome;
    milliseconds after{0};  // from fault() to the prompt
  };
  Ended ended(milliseconds most = milliseconds(20'000));

 private:
  std::vector<std::string> host_of_rank_;
  std::unique_ptr<Process> phalanx_;
  Instant fault_at_{};
};

// EXPECT_HAS(text, part): part is in text; the failure shows the whole text.
#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << "no \"" << (part) << "\" in:\n" << (text)
#define EXPECT_HAS_NOT(text, part) EXPECT_EQ((text).find(part), std::string::npos) << "\"" << (part) << "\" in:\n" << (text)

}  // namespace phalanx::testbed
