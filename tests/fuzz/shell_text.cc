// Any bytes as a shell script: every command is understood or not, nothing runs away; secrets are cut out of any text.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "machine/command/launch_line.h"
#include "machine/command/paths.h"
#include "machine/command/shell_text.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  int last = 1;
  machine::read_shell(text, {"run.sh", "0"}, {{"HOME", "/root"}}, [&](const machine::ShellCommand& command, const auto& exported) {
    PHALANX_CHECK(command.line >= last);
    last = command.line;
    PHALANX_CHECK(exported.size() <= 1000);
    machine::Understood understood = machine::read_launch(command.words);
    machine::read_arguments(understood.line.arguments);
    for (const std::string& word : command.words) {
      machine::path_role(word);
      if (machine::looks_like_path(word)) PHALANX_CHECK(machine::absolute_path(word, "/home/train", "/root").starts_with('/'));
    }
  });
  for (bool python : {false, true})
    PHALANX_CHECK(machine::without_secrets(machine::without_secrets(std::string(text), python), python).size() <= size * 3 + 3);
  return 0;
}
