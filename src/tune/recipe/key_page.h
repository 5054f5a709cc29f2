// The table of keys as a page of documentation, docs/llama-factory-keys.md.
#pragma once

#include <string>
#include <string_view>

namespace phalanx::tune {

std::string key_page();  // Markdown
// The file, from the top of the repository, of the test that shows that an honoured key does what its row says.
std::string_view test_of(std::string_view key);

}  // namespace phalanx::tune
