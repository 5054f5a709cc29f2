// Any bytes as a shell script: every command is understood or not, nothing runs away; secrets are cut out of any text.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "host/command_paths.h"
#include "host/launch_line.h"
#include "host/shell_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  int last = 1;
  host::read_shell(text, {"run.sh", "0"}, {{"HOME", "/root"}}, [&](const host::ShellCommand& command, const auto& exported) {
    CHECK(command.line >= last);
    last = command.line;
    CHECK(exported.size() <= 1000);
    host::Understood understood = host::read_launch(command.words);
    host::read_arguments(understood.line.arguments);
    for (const std::string& word : command.words) {
      host::path_role(word);
      if (host::looks_like_path(word)) CHECK(host::absolute_path(word, "/home/train", "/root").starts_with('/'));
    }
  });
  for (bool python : {false, true})
    CHECK(host::without_secrets(host::without_secrets(std::string(text), python), python).size() <= size * 3 + 3);
  return 0;
}
