// What `phalanx check` shows: what the hosts are, then what was found. Pure functions; docs/formats/check-json.md is the JSON.
//
// Hosts that are alike share a column. What all have in common stands once, over the whole width; what differs from the majority
// carries a mark. Where the columns do not fit, the majority is one block and each odd host a line below it.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "base/language.h"
#include "doctor/examine.h"
#include "job/choose/choose.h"

namespace phalanx::view {

struct CheckStyle {
  base::Language language = base::Language::kEnglish;
  size_t columns = 80;  // no line is wider, but for commands that cannot be broken; at least 40
  bool utf8 = true;     // else the marks are ASCII
  bool colour = false;  // besides the marks and words, never instead of them
};

// Table, links, findings and the closing line.
std::string check_text(const doctor::Situation& situation, const doctor::Examination& examination, const CheckStyle& style);

// Its parts, each empty where there is nothing to say.
std::string check_table(const doctor::Situation& situation, const CheckStyle& style);
std::string check_findings(const doctor::Situation& situation, const doctor::Examination& examination, const CheckStyle& style);
std::string check_closing(const doctor::Situation& situation, const doctor::Examination& examination, const CheckStyle& style);

// choices: what `plan` would choose, if a command is known. The language is English: JSON is for programs.
base::Json check_json(const doctor::Situation& situation, const doctor::Examination& examination, const job::Choices* choices = nullptr);

// "gpu[01-06,08]", "all 64 hosts", "37 of 64 hosts (gpu[01-03,05,…)".
std::string name_hosts(const doctor::Situation& situation, const std::vector<size_t>& hosts, const CheckStyle& style);

}  // namespace phalanx::view
