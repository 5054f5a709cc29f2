// Any bytes as a project file. What is accepted are options that the command line would take, and variables that exec would; what is
// refused is one line that begins with the file.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "cli/flags/env_file.h"
#include "cli/flags/flag_value.h"
#include "cli/project/project_file.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto file = cli::parse_project_file(std::string_view(reinterpret_cast<const char*>(data), size), "f");
  if (!file.ok()) {
    PHALANX_CHECK(file.error().kind == base::ErrorKind::kConfig && file.error().message.starts_with("f:"));
    PHALANX_CHECK(file.error().message.find('\n') == std::string::npos);
    return 0;
  }
  for (const cli::ProjectValue& one : file->values) {
    PHALANX_CHECK(cli::is_project_key(*one.flag) && one.line >= 1 && one.column >= 1);
    PHALANX_CHECK(one.value.find('\0') == std::string::npos);
    if (one.flag->kind == cli::ValueKind::kNone) PHALANX_CHECK(one.value == "true" || one.value == "false");
    else PHALANX_CHECK(cli::check_value(*one.flag, "x", one.value).ok());
  }
  for (const cli::ProjectVariable& one : file->env) {
    PHALANX_CHECK(cli::is_variable_name(one.name) && one.line >= 1);
    PHALANX_CHECK(!one.value || (one.value->find('\0') == std::string::npos && one.value->size() <= cli::kLongestEnvValue));
  }
  return 0;
}
