// The table of keys as a page of documentation, docs/llama-factory-keys.md.
#pragma once

#include <string>

namespace phalanx::tune {

std::string key_page();  // Markdown

}  // namespace phalanx::tune
