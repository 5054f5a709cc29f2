// The page of one code in one language, as Markdown:
//
//   # a port the job needs is taken
//
//   ## Question            only in codes/checks
//
//   Is MASTER_PORT free on the host of rank 0?
//
//   ## Why
//
//   Paragraphs. A line may end anywhere; an empty line ends the paragraph. "\<" is "<", which Markdown would take for a tag.
//
//   ## What to do
//
//   End what holds it:
//
//   ```sh
//   ss -ltnp
//   ```
//
//   ## Source              English page only; may be left out
//
// In Chinese the headings are 检查内容, 原因, 怎么办. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/language.h"
#include "base/result.h"

namespace phalanx::codes {

struct Page {
  std::string title, question, why, fix, source;  // as in Code
};

// Error (kConfig): "line 7: …", where a heading is unknown, twice, out of order or without text, or a block of commands has no end.
base::Result<Page> parse_page(std::string_view text, base::Language language);

}  // namespace phalanx::codes
