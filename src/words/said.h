// Chinese for what was made in English: errors of layers below the language of the reader, and the lines of the engine. The catalogue is
// searched for the text whose fixed parts the English consists of; the values between them are kept, and are themselves looked up. A text
// that the catalogue does not have stays English. Texts that are known in both languages when they are made use tr (message.h).
#pragma once

#include <string>
#include <string_view>

#include "base/language.h"
#include "base/result.h"
#include "words/message.h"

namespace phalanx::words {

// One line. Unchanged where the language is English, or nothing matches.
std::string said_in(Language language, std::string_view english);

// Error::render() in the language of the reader, with its labels. Of a text of several lines the first is looked up, the others where all
// are found: then they are a list; otherwise they are the output of a program, which stays as it is.
std::string render(const base::Error& error, Language language);

}  // namespace phalanx::words
