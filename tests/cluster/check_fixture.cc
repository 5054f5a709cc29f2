#include "check_fixture.h"

#include <fmt/format.h>

#include "gpu_tree.h"

namespace phalanx::testbed {

namespace {

bool names(const base::Json& finding, const std::string& host) {
  if (host.empty()) return true;
  for (const base::Json& name : finding["hosts"])
    if (name == host) return true;
  return false;
}

}  // namespace

HostOptions session_variable(const std::string& assignments) {
  HostOptions host;
  host.sshd_config = {"SetEnv " + assignments};
  return host;
}

std::string two_gpus(const std::string& host) {
  std::string script =
      "mkdir -p /tmp/nvml && cp " PHALANX_NVML_STANDIN " /tmp/nvml/libnvidia-ml.so.1 && cat > /tmp/nvml/nvml.txt <<'END'\n";
  script += "driver 535.129.03\ncuda 12020\n";
  for (int i = 0; i < 2; ++i) {
    ::phalanx::machine::test::TreeGpu gpu;
    gpu.uuid = fmt::format("GPU-{}-{}", host, i);
    gpu.pci = fmt::format("0000:0{}:00.0", i + 1);
    script += ::phalanx::machine::test::description(gpu);
  }
  return script + "p2p 0 1 1 1 30\nEND\n";
}

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
  for (const base::Json& link : json["mesh"]["links"])
    if (link["outcome"] != "ok") text += link.dump() + "\n";
  for (const base::Json& host : json["hosts"])
    if (!host["probed"]) text += fmt::format("{} was not probed: {}\n", host["name"].dump(), host["error"].dump());
  return text;
}

Checked Check::check(const Words& args, const std::string& first) {
  Words argv = with({PHALANX_PROGRAM, "check", "--json"}, args);
  if (!first.empty()) argv = with({"/bin/bash", "-c", first + "; exec \"$@\"", "bash"}, argv);
  return ask(argv);
}

Checked Check::ask(const Words& argv) {
  Checked checked;
  checked.outcome = cluster().run_on("ctl", {.argv = argv, .cwd = "/tmp"});
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

void Check::expect_fixed(const Words& args, const std::string& code, const std::string& host) {
  Checked before = check(args);
  expect(before, code, host);
  const base::Json* found = before.finding(code, host);
  if (!found) return;
  std::string fix = before.fix(code, host), where = base::get_string(*found, "where").value_or("");
  ASSERT_FALSE(fix.empty()) << code << " has no fix:\n" << before.all();
  if (fix.rfind("export ", 0) == 0 || fix.rfind("unset ", 0) == 0) return expect_gone(check(args, fix), code);
  for (const base::Json& name : (*found)["hosts"]) {
    std::string typed_on = where.empty() ? name.get<std::string>() : where;
    Outcome outcome = cluster().run_on(typed_on, {.argv = {"/bin/bash", "-c", fix}});
    EXPECT_EQ(outcome.exit_code, 0) << typed_on << ": " << fix << "\n" << outcome;
    if (!where.empty()) break;
  }
  expect_gone(check(args), code);
}

}  // namespace phalanx::testbed
