#include "machine/software/parts.h"

namespace phalanx::machine {

SoftwareFacts probe_software(const ProbeRequest& request) {
  Rooted files(request.root);
  PythonEnvironment python = find_python_environment(files, request);
  SoftwareFacts facts;
  facts.program = python.program;
  facts.program_error = python.program_error;
  facts.bad_first_line = python.bad_first_line;
  facts.interpreter = python.interpreter;
  facts.prefix = python.prefix;
  facts.environment_kind = python.kind;
  facts.python = python.version;
  facts.assumed = python.assumed;
  facts.site_packages = python.site_packages;
  facts.user_site = python.user_site;
  if (!facts.interpreter.empty()) {
    read_packages(files, facts);
    read_editables(files, facts);
    read_torch(files, facts);
    read_shebangs(files, facts);
    read_extension_locks(files, request, facts);
    read_nccl_libraries(files, request, facts);
  }
  read_nccl_conf(files, request, facts);
  read_rank_variables(files, request, facts);
  return facts;
}

}  // namespace phalanx::machine
