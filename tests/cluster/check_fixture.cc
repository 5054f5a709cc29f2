#include "check_fixture.h"

#include <fmt/format.h>

namespace testbed {

namespace {

bool names(const base::Json& finding, const std::string& host) {
  if (host.empty()) return true;
  for (const base::Json& name : finding["hosts"])
    if (name == host) return true;
  return false;
}

}  // namespace

const base::Json* Checked::finding(const std::string& code, const std::string& host) const {
  auto list = json.find("findings");
  if (list == json.end()) return nullptr;
  for (const base::Json& finding : *list)
    if (finding["code"] == code && names(finding, host)) return &finding;
  return nullptr;
}

std::string Checked::fix(const std::string& code, const std::string& host) const {
  const base::Json* found = finding(code, host);
  return found ? base::get_string(*found, "fix").value_or("") : "";
}

std::string Checked::all() const {
  std::string text;
  auto list = json.find("findings");
  if (list == json.end()) return "no findings in the answer:\n" + outcome.out + outcome.err;
  for (const base::Json& f : *list)
    text += fmt::format("{} {} {}: {} [fix: {}]\n", f["severity"].dump(), f["code"].dump(), f["hosts"].dump(), f["evidence"].dump(),
                        f["fix"].dump());
  return text;
}

Checked Check::check(const Words& args, milliseconds deadline) {
  Words argv = {PHALANX_PROGRAM, "check", "--json"};
  argv.insert(argv.end(), args.begin(), args.end());
  Checked checked;
  checked.outcome = cluster().run_on("ctl", {.argv = argv, .cwd = "/tmp"}, deadline);
  auto json = base::parse_json(checked.outcome.out, 64 << 20);
  if (json.ok()) checked.json = std::move(json).value();
  else ADD_FAILURE() << "check gave no JSON: " << checked.outcome;
  return checked;
}

void Check::expect(const Checked& checked, const std::string& code, const std::string& host) {
  const base::Json* found = checked.finding(code, host);
  ASSERT_NE(found, nullptr) << code << " was not found on " << host << ":\n" << checked.all();
  EXPECT_FALSE(base::get_string(*found, "evidence").value_or("").empty());
  bool refuses = base::get_string(*found, "severity") == "error";
  EXPECT_TRUE(!refuses || checked.outcome.exit_code == 3) << checked.outcome;
}

void Check::expect_gone(const Checked& checked, const std::string& code) {
  EXPECT_EQ(checked.finding(code), nullptr) << code << " is still there:\n" << checked.all();
}

void Check::type(const std::string& host, const std::string& fix) {
  ASSERT_FALSE(fix.empty());
  Outcome outcome = cluster().run_on(host, {.argv = {"/bin/bash", "-c", fix}});
  EXPECT_EQ(outcome.exit_code, 0) << host << ": " << fix << "\n" << outcome;
}

}  // namespace testbed
