// Any bytes as a pasted command line, with any bytes in the files that it names. What is accepted can be written as a line of phalanx run
// and read again as the same words; what is refused is one line.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/text.h"
#include "frontdoor/frontdoor.h"
#include "frontdoor/shell_line.h"

using namespace phalanx;

namespace {

// The first half of the bytes is the line; the second half is every file.
struct OneFile : frontdoor::Surroundings {
  std::string content;
  std::optional<std::string> variable(const std::string& name) const override {
    return name == "HOME" ? std::optional<std::string>("/h") : std::nullopt;
  }
  base::Result<std::optional<std::string>> file(const std::string&) const override { return std::optional<std::string>(content); }
  bool only_ours(const std::string& path) const override { return path.size() % 2 == 0; }
  bool has_program(const std::string&) const override { return true; }
  std::string folder() const override { return "/w"; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t split = all.find('\x01');
  OneFile around;
  if (split != std::string_view::npos) around.content = all.substr(split + 1);
  auto commands = frontdoor::parse_shell(all.substr(0, split));
  if (!commands.ok()) {
    PHALANX_CHECK(commands.error().message.starts_with("line ") && commands.error().message.find('\n') == std::string::npos);
    return 0;
  }
  for (const frontdoor::ShellCommand& command : *commands) {
    auto result = frontdoor::translate({command.assignments, command.words}, around);
    if (!result.ok()) {
      PHALANX_CHECK(!result.error().message.empty());
      continue;
    }
    PHALANX_CHECK(!result->argv.empty());
    for (const frontdoor::Host& host : result->hosts) PHALANX_CHECK(!host.name.empty() && host.name[0] != '-' && host.slots >= 0);
    for (const auto& [name, value] : result->environment) PHALANX_CHECK(!name.empty() && value.find('\0') == std::string::npos);
    for (const std::string& word : frontdoor::run_options_of(*result)) PHALANX_CHECK(word.find('\0') == std::string::npos);
  }
  return 0;
}
