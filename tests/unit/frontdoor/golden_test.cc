// Every case of tests/data/frontdoor/ has the plan that an expert would write.
#include <gtest/gtest.h>

#include <fstream>

#include "cases.h"
#include "frontdoor/shell_line.h"

namespace phalanx::frontdoor {
namespace {

std::string plan_of_command(const Case& one) {
  base::Result<std::vector<ShellCommand>> commands = parse_shell(one.command);
  if (!commands.ok()) return "error: " + commands.error().message + "\n";
  for (ShellCommand& command : *commands) {
    Line line{command.assignments, command.words};
    if (!line.words.empty() && line.words[0] == "nohup") line.words.erase(line.words.begin());
    if (peer_of(line.words)) return plan_of(translate(line, one.world));
  }
  return commands->empty() ? "no command\n" : plan_of(translate({{}, commands->front().words}, one.world));
}

TEST(Golden, EveryCaseHasTheExpertsPlan) {
  const char* record = std::getenv("PHALANX_RECORD_FRONTDOOR");  // a file that gets the plans as they are now, for a look at them
  std::ofstream recorded(record ? record : "/dev/null");
  size_t count = 0;
  for (const Case& one : all_cases()) {
    ++count;
    const std::string plan = plan_of_command(one);
    recorded << "=== " << one.name << "\n" << plan;
    EXPECT_EQ(plan, one.plan) << one.name << "\n" << one.command;
  }
  EXPECT_GE(count, 80u);
}

}  // namespace
}  // namespace phalanx::frontdoor
