// What hosts report of their ranks.
#include <gtest/gtest.h>

#include "script.h"

namespace phalanx::job::test {
namespace {

// A host that speaks of the ranks of another is refused; nothing it said of them is kept.
TEST(Supervisor, AHostSpeaksOfItsOwnRanksOnly) {
  Script s({1, 2});
  wire::Output output;
  EXPECT_FALSE(is_of_its_own(s.state, {0, 1, output})) << "nothing runs yet";
  s.run_all();
  for (auto [host, rank, its_own] :
       {std::tuple{0, 0, true}, {1, 1, true}, {1, 2, true}, {0, 1, false}, {0, 2, false}, {1, 0, false}, {1, 3, false}, {0, -1, false}}) {
    size_t h = static_cast<size_t>(host);
    output.rank = static_cast<uint32_t>(rank);
    auto report = [&, its = its_own](auto what) {
      s.state.hosts[h].heard_since = 0;
      EXPECT_EQ(is_of_its_own(s.state, {h, 1, what}), its);
      s.feed(HostReported{h, 1, what});
      EXPECT_EQ(s.state.hosts[h].heard_since, its ? 1u : 0u);
    };
    report(output);
    wire::RankProgress progress;
    progress.step = 7;
    report(RankAdvanced{output.rank, progress});
    wire::Pulse pulse;
    pulse.window_ms = 1000;
    pulse.ranks.resize(1);
    pulse.ranks[0].rank = output.rank;
    report(pulse);
  }
}

}  // namespace
}  // namespace phalanx::job::test
