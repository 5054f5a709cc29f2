// What `phalanx check` and `phalanx explain` take from the command line, and what the exit code of a check says.
#include <gtest/gtest.h>

#include "cli/codes.h"
#include "cli/exit_code.h"
#include "cli/flags/command_line.h"
#include "doctor/catalogue.h"

namespace phalanx::cli {
namespace {

base::Result<RunOptions> options_of(std::vector<std::string> words) {
  auto invocation = parse_command_line(words);
  if (!invocation.ok()) return std::move(invocation).error();
  return run_options(*invocation);
}

TEST(CheckOptions, FailOnAndWatch) {
  auto options = options_of({"check", "gpu01,gpu02", "--fail-on", "warning", "--watch", "10s", "--", "python", "train.py"});
  ASSERT_TRUE(options.ok()) << options.error().render();
  EXPECT_EQ(options->fail_on, FailOn::kWarning);
  EXPECT_EQ(options->watch, std::chrono::seconds(10));
  EXPECT_EQ(options->hosts, "gpu01,gpu02");
  EXPECT_EQ(options->command, (std::vector<std::string>{"python", "train.py"}));
  EXPECT_EQ(options_of({"check"})->fail_on, FailOn::kError);
  EXPECT_FALSE(options_of({"check", "--fail-on", "warnings"}).ok());
  EXPECT_FALSE(options_of({"check", "--watch", "10ms"}).ok());
  EXPECT_FALSE(options_of({"run", "--watch", "10s", "--", "true"}).ok());
}

TEST(CheckOptions, OnlyTakesCodesAndTheirBeginnings) {
  if (doctor::catalogue().empty()) GTEST_SKIP() << "the catalogue is empty";
  std::string code(doctor::catalogue()[0]->code), group = code.substr(0, code.find('-') + 1);
  std::string small = group;
  for (char& c : small) c = static_cast<char>(std::tolower(c));
  auto options = options_of({"check", "--only", code + "," + small, "--only", code});
  ASSERT_TRUE(options.ok()) << options.error().render();
  EXPECT_EQ(options->only, (std::vector<std::string>{code, group, code}));
  auto wrong = options_of({"check", "--only", code + "X"});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().kind, base::ErrorKind::kUsage);
  EXPECT_NE(wrong.error().hint.find("did you mean " + code), std::string::npos) << wrong.error().render();
  EXPECT_FALSE(options_of({"check", "--only", ""}).ok());
  EXPECT_FALSE(options_of({"check", "--only", std::string(1000, 'A')}).ok());
}

// Every code, with one letter lost, leads back to itself; which letter, differs from code to code.
TEST(Codes, ASlipOfTheFingerFindsTheCode) {
  constexpr size_t kEvery = 5;
  size_t nth = 0;
  for (const doctor::Row* row : doctor::catalogue())
    for (size_t i = nth++ % kEvery; i < row->code.size(); i += kEvery) {
      std::string slip(row->code);
      slip.erase(i, 1);
      if (doctor::find_row(slip)) continue;
      EXPECT_NE(unknown_code(slip).hint.find(row->code), std::string::npos) << slip << ": " << unknown_code(slip).hint;
    }
}

job::State state_on(size_t hosts) {
  job::State state;
  state.hosts.resize(hosts);
  state.survey.situation.hosts.resize(hosts);
  for (doctor::HostView& host : state.survey.situation.hosts) host.probed = true;
  return state;
}

TEST(CheckExit, SaysTheWorst) {
  job::State state = state_on(2);
  job::Verdict checked;
  checked.kind = job::Verdict::Kind::kChecked;
  doctor::Examination clean, noted, warned, failed;
  noted.notes = warned.warnings = failed.errors = 1;
  EXPECT_EQ(check_exit_code(state, checked, clean, FailOn::kNote), 0);
  EXPECT_EQ(check_exit_code(state, checked, failed, FailOn::kError), 3);
  EXPECT_EQ(check_exit_code(state, checked, failed, FailOn::kNever), 0);
  EXPECT_EQ(check_exit_code(state, checked, warned, FailOn::kError), 0);
  EXPECT_EQ(check_exit_code(state, checked, warned, FailOn::kWarning), 3);
  EXPECT_EQ(check_exit_code(state, checked, noted, FailOn::kWarning), 0);
  EXPECT_EQ(check_exit_code(state, checked, noted, FailOn::kNote), 3);
  checked.refusals = {base::fail(base::ErrorKind::kUnfit, "no set of equal GPUs")};
  EXPECT_EQ(check_exit_code(state, checked, clean, FailOn::kError), 3);
  state.survey.situation.hosts[1].probed = false;
  EXPECT_EQ(check_exit_code(state, checked, failed, FailOn::kNever), 4);
  state.hosts[1].refusal = base::fail(base::ErrorKind::kTimeout, "no answer");
  EXPECT_EQ(check_exit_code(state, checked, failed, FailOn::kError), 5);
  job::Verdict interrupted;
  interrupted.kind = job::Verdict::Kind::kInterrupted;
  interrupted.exit_code = 130;
  EXPECT_EQ(check_exit_code(state, interrupted, failed, FailOn::kError), 130);
}

}  // namespace
}  // namespace phalanx::cli
