#include "view/command_list.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <set>

#include "base/text.h"
#include "codes/code.h"
#include "doctor/commands.h"

namespace phalanx::view {
namespace {

using base::Language;
using doctor::Effect;
using words::Text;

// A command, and the codes whose pages have it.
using Commands = std::map<std::string, std::set<std::string_view>>;

void add_commands(std::array<Commands, 3>& by_effect, std::string_view code, std::string_view advice) {
  for (std::string_view line : base::split_lines(advice)) {
    if (!line.starts_with("$ ")) continue;
    line.remove_prefix(2);
    auto effect = doctor::effect_of(line);
    by_effect[static_cast<size_t>(effect ? effect->effect : Effect::kDestroys)][std::string(line)].insert(code);
  }
}

std::string cell(std::string_view text) { return base::replace_all(std::string(text), "|", "\\|"); }

}  // namespace

std::string commands_markdown(Language language) {
  std::array<Commands, 3> by_effect;
  for (const codes::Code& code : codes::all()) add_commands(by_effect, code.name, code.fix.in(language));
  std::string out = fmt::format("# {}\n\n{}\n", Text{"Commands recommended by the pages of codes"}.in(language),
                                Text{"Replace a word in angle brackets with your own value. Phalanx prints a destructive command only for "
                                     "a process, device, file or host that it has observed, followed by a comment that states its cost."}
                                    .in(language));
  constexpr std::array<Text, 3> kTitles = {Text{"Commands that only inspect"}, Text{"Commands that change a setting, or start something"},
                                           Text{"Destructive commands"}};
  for (size_t e = 0; e < by_effect.size(); ++e) {
    bool costs = static_cast<Effect>(e) == Effect::kDestroys;
    out += fmt::format(
        "\n## {}\n\n{}", kTitles[e].in(language),
        costs ? Text{"| command | cost | codes |\n|---|---|---|\n"}.in(language) : Text{"| command | codes |\n|---|---|\n"}.in(language));
    for (const auto& [command, codes] : by_effect[e]) {
      auto effect = doctor::effect_of(command);
      std::string cost = costs ? fmt::format(" {} |", effect ? effect->cost.in(language) : "?") : "";
      out += fmt::format("| `{}` |{} {} |\n", cell(command), cost, fmt::join(codes, ", "));
    }
  }
  return out;
}

}  // namespace phalanx::view
