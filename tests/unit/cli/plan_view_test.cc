#include "cli/plan_view.h"

#include <gtest/gtest.h>

namespace phalanx::cli {
namespace {

TEST(PlanView, ListsTheNamesThatDefaultExportsSendAndNoValue) {
  job::Job job;
  job.hosts.push_back({{"h1", "h1", 0}, 1, {}, {}});
  job.argv = {"true"};
  job.set = {{"HF_TOKEN", "verysecret"}, {"MINE", "verysecret"}};
  job.exported = {"HF_TOKEN"};
  job::State state = job::initial_state(std::move(job), {});
  state.plan = job::make_plan(state.job, {wire::Hello{}}, {}).value();
  state.meeting = job::Meeting{"127.0.0.1", 4711, true};
  std::string text = plan_text(state, base::Language::kEnglish);
  EXPECT_NE(text.find("HF_TOKEN MINE\n"), std::string::npos) << text;
  EXPECT_NE(text.find("by default  HF_TOKEN (to every host; --no-export keeps them here)\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("verysecret"), std::string::npos);
  base::Json json = plan_json(state);
  EXPECT_EQ(base::to_text(json["passed_on_by_default"]), R"(["HF_TOKEN"])");
  EXPECT_EQ(base::to_text(json).find("verysecret"), std::string::npos);
}

}  // namespace
}  // namespace phalanx::cli
