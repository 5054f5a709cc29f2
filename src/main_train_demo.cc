// What main_train.cc calls of engine/finetune/finetune.h, in a phalanx-train without it: the one that `./x demo` builds (PHALANX_DEMO).
#include <algorithm>

#include "base/text.h"
#include "engine/finetune/finetune.h"
#include "os/files.h"

namespace phalanx::engine::finetune {
namespace {

base::Error not_built() {
  return base::fail(base::ErrorKind::kUnfit, "this phalanx-train was built for the demo, without fine-tuning").with_hint("./x build");
}

}  // namespace

bool is_recipe(std::string_view yaml) {
  for (std::string_view line : base::split(yaml, '\n'))
    if (line.starts_with("model_name_or_path:")) return true;
  return false;
}

base::Result<int> run_command(const Command&, bool) { return not_built(); }

std::optional<base::Result<int>> run_verb(const std::vector<std::string>& arguments) {
  for (const char* verb : {"export", "generate", "chat", "keys"})
    if (!arguments.empty() && arguments[0] == verb) return not_built();
  if (std::find(arguments.begin(), arguments.end(), "--check-data") == arguments.end()) return std::nullopt;
  for (const std::string& argument : arguments)
    if (auto yaml = os::read_file(argument, 256 << 10); yaml.ok() && is_recipe(*yaml)) return not_built();
  return std::nullopt;
}

std::string help() { return ""; }

}  // namespace phalanx::engine::finetune
