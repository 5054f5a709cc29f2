// `phalanx check` typed on ctl, its JSON, and the question whether a fault that was really made is found, named, and gone after
// the fix.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "launcher_fixture.h"

namespace testbed {

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
  // `phalanx check --json args…`
  Checked check(const Words& args, milliseconds deadline = milliseconds(30'000));
  // Errors and warnings that a healthy test cluster would not have: what the machine itself lacks is taken out.
  void expect(const Checked& checked, const std::string& code, const std::string& host);
  void expect_gone(const Checked& checked, const std::string& code);
  // The fix, typed as printed on the host (in a shell of root's home there).
  void type(const std::string& host, const std::string& fix);
};

}  // namespace testbed
