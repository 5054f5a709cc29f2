#include "cli/records/runs.h"

#include <gtest/gtest.h>

#include "cli/records/record_life.h"
#include "cli/records/run_story.h"
#include "os/clock.h"

namespace phalanx::cli {
namespace {

using base::Json;

Invocation invocation(const std::vector<std::string>& words) {
  auto parsed = parse_command_line(words);
  EXPECT_TRUE(parsed.ok());
  return *parsed;
}

TEST(Runs, RanksAskedFor) {
  std::vector<std::string> hosts = {"h1", "h1", "h2", "h2"};
  auto wanted = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), "logs");
    auto some = wanted_ranks(invocation(flags), hosts);
    std::string text;
    if (some.ok())
      for (size_t r = 0; r < hosts.size(); ++r) text += (*some)[r] ? '1' : '0';
    return some.ok() ? text : some.error().message;
  };
  EXPECT_EQ(wanted({}), "1111");
  EXPECT_EQ(wanted({"--rank", "0,2-3"}), "1011");
  EXPECT_EQ(wanted({"--rank", "1", "--host", "h1"}), "0100");
  EXPECT_EQ(wanted({"--host", "h2"}), "0011");
  EXPECT_EQ(wanted({"--rank", "4"}), "--rank 4: the run has ranks 0 to 3");
  EXPECT_EQ(wanted({"--rank", "1048577"}), "--rank \"1048577\": not a list of ranks");
  for (const char* bad : {"-1", "3-2", "a", "1,,2", "1-"})
    EXPECT_NE(wanted({"--rank=" + std::string(bad)}).find("not a list"), std::string::npos) << bad;
  EXPECT_NE(wanted({"--host", "h3"}).find("no rank of the run was on this host"), std::string::npos);
}

TEST(Runs, StatesOfARun) {
  logs::Run run;
  run.life = logs::Life::kAlive;
  EXPECT_EQ(state_of(run, nullptr), "starting");
  run.record = {{"state", "running"}};
  EXPECT_EQ(state_of(run, nullptr), "running");
  EXPECT_EQ(state_of(run, {{"phase", "stopping"}}), "stopping");
  run.life = logs::Life::kLost;
  EXPECT_EQ(state_of(run, nullptr), "lost");
  run.life = logs::Life::kEnded;
  for (auto [verdict, state] :
       {std::pair("done", "done"), {"rank-failed", "failed"}, {"host-lost", "failed"}, {"refused", "refused"}, {"odd", "failed"}}) {
    run.record = {{"state", "ended"}, {"verdict", verdict}};
    EXPECT_EQ(state_of(run, nullptr), state);
  }
}

TEST(Runs, Times) {
  EXPECT_EQ(os::parse_iso_time("1970-01-02T00:00:01.500Z"), 86'401);
  for (const char* bad : {"", "yesterday", "2026-11-21", "2026-11-21T07:31:02"}) EXPECT_FALSE(os::parse_iso_time(bad)) << bad;
}

TEST(RecordLife, AnErrorComesBackAsItWasShown) {
  Json record =
      base::parse_json(
          R"({"explained":{"en":[{"message":"m","while":["w"],"because":"b","hint":"h"},7,{"message":3}],"zh":[{"message":"中"}]}})")
          .value();
  std::vector<base::Error> errors = words_of(record, base::Language::kEnglish);
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].render(), "error: m\n  while w\n  because b\n\nhint: h\n");
  EXPECT_EQ(words_of(record, base::Language::kChinese)[0].message, "中");
  EXPECT_TRUE(words_of({{"explained", "no"}}, base::Language::kEnglish).empty());
}

TEST(RecordLife, HowHostsAreReached) {
  job::Job job;
  job.hosts.resize(2);
  job.hosts[0].target = {"here", "", 0};
  job.hosts[1].target = {"gpu02", "me@gpu02", 2222};
  RunOptions options;
  options.ssh_options = {"ProxyJump=bastion"};
  Json record = describe_reach(job, options);
  auto reached = reach_of(record);
  ASSERT_TRUE(reached.ok());
  EXPECT_EQ(reached->hosts[0].destination, "");
  EXPECT_EQ(reached->hosts[1].destination, "me@gpu02");
  EXPECT_EQ(reached->hosts[1].port, 2222);
  EXPECT_EQ(reached->ssh_options, options.ssh_options);
  for (const char* bad :
       {R"({})", R"({"reach":7})", R"({"reach":{"hosts":[]}})", R"({"reach":{"hosts":[{"destination":"x"}]}})",
        R"({"reach":{"hosts":[{"host":"h","destination":"-oProxyCommand=evil"}]}})", R"({"reach":{"hosts":[{"host":"h","port":70000}]}})"})
    EXPECT_FALSE(reach_of(base::parse_json(bad).value()).ok()) << bad;
}

// Only what cannot run anything here is taken from a file.
TEST(RecordLife, SshOptionsOfARecord) {
  auto taken = [](std::vector<std::string> given, const std::vector<std::string>& recorded) {
    base::Status status = add_recorded(given, recorded, "phalanx stop x");
    return status.ok() ? std::optional(given) : std::nullopt;
  };
  using Options = std::vector<std::string>;
  EXPECT_EQ(taken({}, {"ProxyJump=bastion", "port 2222", "USER=me"}), (Options{"ProxyJump=bastion", "port 2222", "USER=me"}));
  for (const char* evil : {"ProxyCommand=id", "proxycommand id", " ProxyCommand=id", "LocalCommand=id", "KnownHostsCommand=id",
                           "Include=/tmp/x", "PKCS11Provider=/tmp/x.so", "SecurityKeyProvider=/tmp/x.so", "XAuthLocation=/tmp/x",
                           "ForwardAgent=yes", "ProxyUseFdpass=yes", "Port=22\nProxyCommand=id", "", "=", "Nonsense=1"})
    EXPECT_FALSE(taken({}, {evil})) << evil;
  // Given again, by the user: that one counts, whatever the record has.
  EXPECT_EQ(taken({"ProxyCommand=mine"}, {"ProxyCommand=theirs", "Port=22"}), (Options{"ProxyCommand=mine", "Port=22"}));
  EXPECT_TRUE(parse_command_line(Options{"stop", "--ssh-option", "ProxyCommand=mine", "x"}).ok());
}

TEST(RunStory, EventsInWords) {
  auto say = [](const char* text, size_t times = 1) {
    Json fields = base::parse_json(text).value();
    return event_text({"", base::get_string(fields, "event").value(), fields}, times, base::Language::kEnglish);
  };
  EXPECT_EQ(say(R"({"event":"rank_exited","rank":3,"host":"h2","code":1})"), "rank 3 (h2) exited with code 1");
  EXPECT_EQ(say(R"({"event":"rank_exited","rank":3,"host":"h2","signal":"SIGTERM","stopped_by_us":"SIGTERM"})"),
            "rank 3 (h2) killed by SIGTERM, stopped by phalanx");
  EXPECT_EQ(say(R"({"event":"rank_started","rank":0,"ok":true})", 8), "ranks started: 8");
  EXPECT_EQ(say(R"({"event":"host_prepared","host":"h1","ok":false,"error":"no such folder"})"), "h1: no such folder");
  EXPECT_EQ(say(R"({"event":"something_new","x":1})"), R"(something_new {"x":1})") << "what is not known is shown as it is";
  EXPECT_EQ(say(R"({"event":"host_dialed","host":"h1"})"), "");
}

TEST(RunStory, TheTimelineFoldsAndLeavesOutWhatIsExpected) {
  std::vector<RunEvent> events;
  for (const char* text :
       {R"({"event":"host_open","host":"h1"})", R"({"event":"host_open","host":"h2"})", R"({"event":"host_dialed","host":"h1"})",
        R"({"event":"host_prepared","host":"h1","ok":true})", R"({"event":"host_dialed","host":"h2"})",
        R"({"event":"host_prepared","host":"h2","ok":true})", R"({"event":"host_finished","host":"h1","killed":0,"left":0})",
        R"({"event":"host_ended","host":"h1","error":"h1: lost contact with the host","because":"it ended"})",
        R"({"event":"host_ended","host":"h2","error":"h2: lost contact with the host","because":"silence"})"}) {
    Json fields = base::parse_json(text).value();
    events.push_back({"", base::get_string(fields, "event").value(), fields});
  }
  std::string told;
  for (const view::StoryEvent& event : story_of({}, nullptr, events, {}, base::Language::kEnglish).timeline) told += event.text + "\n";
  EXPECT_EQ(told, "hosts that answered: 2\nhosts ready: 2\nh1: nothing left\nh2: lost contact with the host: silence\n");
}

TEST(RunStory, CurvesAndRanks) {
  logs::Run run;
  run.life = logs::Life::kEnded;
  run.record = base::parse_json(R"({"state":"ended","verdict":"done","hosts":[{"host":"h1","ranks":2}]})").value();
  std::vector<logs::ProgressPoint> points;
  for (int i = 0; i < 5; ++i) {
    wire::RankProgress p;
    p.step = 10 * i;
    p.total = 40;
    p.loss = 5.0 - i;
    points.push_back({i * 2.0, 0, p});
  }
  view::Story story = story_of(run, nullptr, {}, points, base::Language::kEnglish);
  ASSERT_EQ(story.losses.size(), 1u);
  ASSERT_EQ(story.step_times.size(), 1u);
  EXPECT_DOUBLE_EQ(story.step_times[0].points[0].second, 0.2);
  ASSERT_EQ(story.table.size(), 2u);
  EXPECT_EQ(story.table[0].step, "40/40");
  EXPECT_DOUBLE_EQ(*story.table[0].seconds_per_step, 0.2);
  EXPECT_EQ(story.table[1].step, "");
}

// As explain prints it for the same message; nothing to type from a record that somebody else wrote, and nothing for a run that went well.
TEST(RunStory, AdviceOnTheMessageThatEndedTheRun) {
  logs::Run run;
  run.life = logs::Life::kEnded;
  run.ours = true;
  run.record = Json{{"state", "ended"}, {"verdict", "rank_failed"}, {"exit_code", 1}, {"cause", "RUN-EXCEPTION"}};
  run.record["evidence"] = "RuntimeError: operator torchvision::nms does not exist";
  run.record["where"] = "train.py:3 (main)";
  view::Story story = story_of(run, nullptr, {}, {}, base::Language::kEnglish);
  ASSERT_TRUE(story.bad);
  ASSERT_EQ(story.advice.size(), 1u);
  EXPECT_NE(view::story_text(story, base::Language::kEnglish, 0).find("\nWhat to do\n  torchvision was built for"), std::string::npos);
  EXPECT_EQ(story_of(run, nullptr, {}, {}, base::Language::kChinese).advice.size(), 1u);
  run.ours = false;
  EXPECT_TRUE(story_of(run, nullptr, {}, {}, base::Language::kEnglish).advice.empty());
  run.ours = true;
  run.record["verdict"] = "done";
  run.record["exit_code"] = 0;
  EXPECT_TRUE(story_of(run, nullptr, {}, {}, base::Language::kEnglish).advice.empty());
}

}  // namespace
}  // namespace phalanx::cli
