// `phalanx check` typed on ctl, its JSON, and the question whether a fault that was really made is found, named, and gone after
// the fix.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "launcher_fixture.h"

namespace phalanx::testbed {

inline const Words kHosts = {"-H", "h1,h2,h3"};
// A host whose logins get these variables ("A=1 B=2").
HostOptions session_variable(const std::string& assignments);

// Shell lines that give a host the stand-in NVML library with two RTX 3090; its logins need kGpuLibrary as session_variable.
inline const std::string kGpuLibrary = "PHALANX_NVML=/tmp/nvml/libnvidia-ml.so.1";
std::string two_gpus(const std::string& host);

struct Checked {
  Outcome outcome;
  base::Json json;
  // The finding of `code` that names `host` ("" for any); null if there is none.
  const base::Json* finding(const std::string& code, const std::string& host = "") const;
  std::string fix(const std::string& code, const std::string& host = "") const;
  std::string all() const;  // every finding, a line each, for a failing test
};

class Check : public Launcher {
 protected:
  // `phalanx check --json args…`, typed after `first` ("export A=1") in the same shell.
  Checked check(const Words& args, const std::string& first = "");
  // Any command on ctl whose output is the JSON of a check.
  Checked ask(const Words& argv);
  // The code is found and names the host; an error makes the exit code 3.
  void expect(const Checked& checked, const std::string& code, const std::string& host);
  void expect_gone(const Checked& checked, const std::string& code);
  // The whole way of a user: the code is found on the host; its fix is typed as printed, where it says (an "export …" before the next
  // check, anything else on the host it names, or on each that has the finding); then it is gone.
  void expect_fixed(const Words& args, const std::string& code, const std::string& host);
};

}  // namespace phalanx::testbed
