#include "cli/plan_view.h"

#include <gtest/gtest.h>

#include "cli/passed_on.h"

namespace phalanx::cli {
namespace {

TEST(PlanView, ListsTheNamesThatDefaultExportsSendAndNoValue) {
  job::Job job;
  job.hosts.push_back({{"h1", "h1", 0}, 1, {}, {}});
  job.argv = {"true"};
  job.set = {{"HF_TOKEN", "verysecret"}, {"MINE", "verysecret"}};
  job.origins = {kFromHere, kFromEnv};
  job.exported = {"HF_TOKEN"};
  job::State state = job::initial_state(std::move(job), {});
  state.plan = job::make_plan(state.job, {wire::Hello{}}, {}).value();
  state.meeting = job::Meeting{"127.0.0.1", 4711, true};
  std::string text = plan_text(state, base::Language::kEnglish);
  EXPECT_NE(text.find("passed on   this machine (--no-export keeps them here): HF_TOKEN\n            --env: MINE\n"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("verysecret"), std::string::npos);
  EXPECT_NE(text.find("unless set: OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1 TORCH_NCCL_ASYNC_ERROR_HANDLING=1"), std::string::npos) << text;
  base::Json json = plan_json(state);
  EXPECT_EQ(base::to_text(json["passed_on_by_default"]), R"(["HF_TOKEN"])");
  EXPECT_EQ(base::to_text(json["passed_on_from"]), R"([{"name":"HF_TOKEN","from":"this machine"},{"name":"MINE","from":"--env"}])");
  EXPECT_EQ(base::to_text(json).find("verysecret"), std::string::npos);
}

TEST(PlanView, ListsTheSparesWithTheirSlots) {
  job::Job job;
  job.hosts.push_back({{"h1", "h1", 0}, 2, {}, {}});
  job.argv = {"true"};
  job::State state = job::initial_state(std::move(job), {});
  state.plan = job::make_plan(state.job, {wire::Hello{}}, {}).value();
  state.meeting = job::Meeting{"127.0.0.1", 4711, true};
  const std::vector<job::HostRequest> spares = {{{"h3", "h3", 0}, 2, {}, {}}, {{"h4", "h4", 0}, std::nullopt, {}, {}}};
  EXPECT_NE(plan_text(state, base::Language::kEnglish, spares).find("\nspares      h3:2, h4\n"), std::string::npos);
  EXPECT_EQ(plan_text(state, base::Language::kEnglish).find("spares"), std::string::npos);
  EXPECT_EQ(base::to_text(plan_json(state, spares)["spares"]), R"([{"host":"h3","slots":2},{"host":"h4"}])");
}

}  // namespace
}  // namespace phalanx::cli
