// Any bytes as a file of environment variables. What is accepted can be handed to exec: names are names, nothing holds a
// zero byte, and writing the values out between double quotes reads back the same.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "cli/flags/env_file.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto variables = cli::parse_env_file(text, "f");
  if (!variables.ok()) {
    PHALANX_CHECK(variables.error().message.starts_with("f:") && variables.error().message.find('\n') == std::string::npos);
    return 0;
  }
  std::string again;
  for (const auto& [name, value] : *variables) {
    PHALANX_CHECK(cli::is_variable_name(name) && value.find('\0') == std::string::npos && value.size() <= cli::kLongestEnvValue);
    again += "export " + name + "=\"";
    for (char c : value) {
      if (c == '\n') again += "\\n";
      else if (c == '"' || c == '\\') again += {'\\', c};
      else again += c;
    }
    again += "\" # end\n";
  }
  auto reread = cli::parse_env_file(again, "f");
  if (again.size() <= cli::kLargestEnvFile) PHALANX_CHECK(reread.ok() && *reread == *variables);
  return 0;
}
