// What the commands of pages and findings do to the machine they are typed on. Every command that is printed for a user to type is
// known here: one that ends, deletes, overwrites or detaches something is printed with its cost, and only where the finding has named
// the object it acts on.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/language.h"
#include "doctor/catalogue.h"

namespace phalanx::doctor {

enum class Effect {
  kLooks,     // reads
  kChanges,   // sets or starts something that can be set back
  kDestroys,  // ends processes, deletes, overwrites, detaches, interrupts others
};

struct CommandEffect {
  Effect effect = Effect::kLooks;
  words::Text cost;  // what is lost; for kDestroys only
};

// Of a whole shell line: the worst of its parts. None: a part is not known.
std::optional<CommandEffect> effect_of(std::string_view line);

// True if the line has a placeholder, "<pid>" or "…", that only the user can fill in.
bool has_placeholder(std::string_view line);

// "kill 812   # ends the process; what it has not saved is lost": still one line that can be pasted as it is.
std::string with_cost(std::string_view line, base::Language language);

// The command to print for a finding: its own, else the first of its row's page that can be typed as it is and destroys nothing.
std::string command_of(const Finding& finding, base::Language language);

}  // namespace phalanx::doctor
