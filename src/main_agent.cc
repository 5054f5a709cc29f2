// phalanx-agent: what deployment puts on hosts, as <cache>/<build id>/phalanx (hosts/connect/deploy.h). The part of the launcher that runs
// there, and nothing else, in half its size. It is embedded in the launcher, compressed (cli/agent_image.h).
#include <fcntl.h>
#include <sys/prctl.h>

#include <cstdio>
#include <string>
#include <vector>

#include "agent/clean_builds.h"
#include "agent/guard.h"
#include "base/sha256.h"
#include "os/build_id.h"
#include "os/fd.h"

using namespace phalanx;

namespace {

// `phalanx selfcheck SHA256`: whether all of this program arrived.
int selfcheck(const std::string& expected) {
  os::Fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return 1;
  base::Sha256 hash;
  static char buffer[128 << 10];
  for (;;) {
    os::IoStep step = os::read_step(file.get(), buffer, sizeof(buffer));
    if (step.kind == os::IoStep::kEnd) return hash.hex() == expected ? 0 : 1;
    if (step.kind != os::IoStep::kBytes) return 1;
    hash.update(std::string_view(buffer, step.bytes));
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  ::prctl(PR_SET_NAME, "phalanx");  // started by way of /proc/self/exe it would be called "exe"
  if (args.size() == 1 && args[0] == "agent") return agent::run_guarded(argv, os::build_id());
  if (args.size() >= 2 && args[0] == "agent" && args[1] == "clean")
    return agent::print_clean_builds(os::build_id(), args.size() == 3 && args[2] == "--yes");
  if (args.size() == 2 && args[0] == "selfcheck") return selfcheck(args[1]);
  std::fputs("error: this is the part of phalanx that runs on hosts; the launcher starts it\n", stderr);
  return 2;
}
