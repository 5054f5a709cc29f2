// Fixes of the command checks print what was seen: the script of the command, or no command at all.
#include <gtest/gtest.h>

#include <algorithm>

#include "doctor/examine.h"
#include "user_files.h"

namespace phalanx::doctor::test {
namespace {

const Finding* finding_of(const Examination& e, std::string_view code) {
  auto found = std::find_if(e.findings.begin(), e.findings.end(), [&](const Finding& f) { return f.row->code == code; });
  return found == e.findings.end() ? nullptr : &*found;
}

TEST(CommandFix, ALightningCommandNamesTheScriptThatWasSeen) {
  Situation s = docker_host_network();
  give(s, "train.yaml", "lightning", "trainer:\n  devices: [0]\n  num_nodes: 2\n");
  Examination unseen = examine(s);
  ASSERT_NE(finding_of(unseen, "CMD-LIGHTNING-DEVICES"), nullptr);
  EXPECT_EQ(finding_of(unseen, "CMD-LIGHTNING-DEVICES")->fix, "");
  give(s, launch_line("python", "src/tune.py"));
  Examination seen = examine(s);
  ASSERT_NE(finding_of(seen, "CMD-LIGHTNING-DEVICES"), nullptr);
  EXPECT_NE(finding_of(seen, "CMD-LIGHTNING-DEVICES")->fix.find(" -- python src/tune.py fit -c "), std::string::npos)
      << finding_of(seen, "CMD-LIGHTNING-DEVICES")->fix;
}

}  // namespace
}  // namespace phalanx::doctor::test
