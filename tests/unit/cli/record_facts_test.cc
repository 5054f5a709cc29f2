#include "cli/records/record_facts.h"

#include <gtest/gtest.h>

#include "base/json_fields.h"
#include "machine/facts.h"

namespace phalanx::cli {
namespace {

TEST(RecordFacts, NamesOfVariablesAreKeptAndNoValue) {
  machine::Facts facts;
  facts.machine.hostname = "gpu01";
  facts.software.environment = {{"TORCH_MYVAL", "visiblevalue"}, {"NCCL_DEBUG", "visiblevalue"}};
  machine::LaunchLine launch;
  launch.launcher = "torchrun";
  launch.variables = {{"MY_SWITCH", "visiblevalue"}};
  facts.command.launches = {launch, {}};
  machine::CommandFile script;
  script.path = "/data/run.sh";
  script.text = "export MY_SWITCH=visiblevalue\n";
  facts.command.files = {script};
  base::Result<std::string> kept = facts_for_file(base::to_text(base::to_json(facts)));
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(kept->find("visiblevalue"), std::string::npos) << *kept;
  base::Json json = base::parse_json(*kept).value();
  EXPECT_EQ(base::to_text(json["software"]["environment_names"]), R"(["NCCL_DEBUG","TORCH_MYVAL"])");
  EXPECT_EQ(base::to_text(json["command"]["launches"][0]["variable_names"]), R"(["MY_SWITCH"])");
  EXPECT_EQ(base::to_text(json["command"]["launches"][1]["variable_names"]), "[]");
  EXPECT_EQ(json["command"]["files"][0]["path"], "/data/run.sh");
  base::Result<machine::Facts> again = base::from_json<machine::Facts>(json);
  ASSERT_TRUE(again.ok()) << "a file that was kept reads as facts";
  EXPECT_EQ(again->machine.hostname, "gpu01");
}

TEST(RecordFacts, WhatIsNoneIsNotKept) {
  for (const char* text : {"", "[]", "{\"machine\": 3}", "nonsense"}) EXPECT_FALSE(facts_for_file(text).ok()) << text;
}

}  // namespace
}  // namespace phalanx::cli
