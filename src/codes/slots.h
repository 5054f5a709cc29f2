// Slots: the places in a page's commands for what only the reader, or a finding, knows. "<pid>" in "kill <pid>" is one.
//
// A page is never filled with invented values. Where a finding is at hand its observed values take the place of the slots; else the slot
// itself is printed, an obvious placeholder. The compiler of codes/ refuses a slot that is not listed here. Pure.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace phalanx::codes {

struct Code;

using Observed = std::map<std::string, std::string, std::less<>>;  // slot without brackets → value, for example {"pid", "812"}

// Every name that a slot may have, sorted. codes/README.md lists them for the authors of pages.
std::span<const std::string_view> slots();

// Where the slot that opens at `at` ends (one past its '>'); 0 if that '<' opens none: "2< file", "<<EOF", "<X>".
size_t slot_end(std::string_view text, size_t at);
// The first slot of a command that is not in the list, with its brackets; empty if there is none.
std::string_view unknown_slot(std::string_view command);

// The slots whose values were observed are replaced, each value as one word of the shell; the others stay. So
// does a slot between quotes whose value would need quotes, and one whose value would be read as an option.
// Of a page's text only lines that start with "$ " are commands; the sentences stay as they are.
std::string fill_command(std::string_view command, const Observed& observed);
std::string fill_page(std::string_view text, const Observed& observed);
// The first command of the page that has slots and of which every slot was observed, filled; empty if there is none.
std::string filled_command(const Code& code, const Observed& observed);

}  // namespace phalanx::codes
