// phalanx-env: what `phalanx env` starts. Works on Python environments of this machine, and needs neither the launcher nor Python.
#include <signal.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/try.h"
#include "envcli/output.h"
#include "envcli/verbs.h"
#include "words/said.h"

using namespace phalanx;

namespace {

base::Result<int> run(const std::vector<std::string>& arguments) {
  TRY_ASSIGN(envcli::Request request, envcli::read_request(arguments));
  if (request.verb == "compare") return envcli::compare(request);
  if (request.verb == "unpack") return envcli::unpack(request);
  TRY_ASSIGN(std::string path, envmove::find_environment(request.environment));
  TRY_ASSIGN(envmove::Environment environment, envmove::read_environment(path));
  if (request.verb == "show") return envcli::show(request, environment);
  if (request.verb == "pack") return envcli::pack(request, environment);
  if (request.verb == "prepare") return envcli::prepare(request, environment);
  return request.verb == "verify" ? envcli::verify(request, environment) : envcli::rehome(request, environment);
}

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 1 && (arguments[0] == "--version" || arguments[0] == "version")) {
    std::puts("phalanx-env " PHALANX_VERSION);
    return 0;
  }
  base::Result<int> code = run(arguments);
  if (code.ok()) return *code;
  std::fputs(words::render(code.error(), envcli::language_here()).c_str(), stderr);
  return base::exit_code(code.error().kind);
}
