// The pages of codes (codes/code.h), for a terminal and as Markdown. Pure; they come with the program.
#pragma once

#include <string>
#include <string_view>

#include "base/language.h"
#include "codes/code.h"
#include "doctor/finding.h"
#include "words/message.h"

namespace phalanx::view {

// The whole page of one code, wrapped to `columns`. Commands stand on lines of their own and are never broken.
std::string explain_page(const codes::Code& code, base::Language language, size_t columns);
// One section of such a page: the heading and, indented, its paragraphs and commands. Nothing if `text` is empty.
void add_explanation(std::string& out, words::Text heading, std::string_view text, base::Language language, size_t columns);

// One line a code, by group. prefix: only codes that start so ("NET-"); empty: all.
std::string explain_list(std::string_view prefix, base::Language language, size_t columns);

// Every page, and every command they advise (command_list.h), as one document.
std::string codes_markdown(base::Language language);

// "error", "warning", "note".
words::Text severity_name(doctor::Severity severity);
// The names of severities in JSON and on the command line: always English.
std::string_view severity_key(doctor::Severity severity);

}  // namespace phalanx::view
