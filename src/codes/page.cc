#include "codes/page.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "base/try.h"
#include "codes/slots.h"

namespace phalanx::codes {
namespace {

using base::Language;

struct Section {
  std::string Page::* text;
  base::Bilingual heading;
};
// In the order in which they stand.
constexpr std::array<Section, 4> kSections = {{
    {&Page::question, {"## Question", "## 检查内容"}},
    {&Page::why, {"## Why", "## 原因"}},
    {&Page::fix, {"## What to do", "## 怎么办"}},
    {&Page::source, {"## Source", "## 出处"}},
}};

class Parser {
 public:
  explicit Parser(Language language) : language_(language) {}

  base::Result<Page> parse(std::string_view text) {
    for (std::string_view line : base::split_lines(text)) {
      ++number_;
      TRY(take(line));
    }
    if (commands_) return fail("a block of commands has no end");
    TRY(end_section());
    if (page_.title.empty()) return fail("the page needs a title: \"# …\"");
    if (page_.why.empty() || page_.fix.empty()) return fail("the page needs to say why, and what to do");
    return std::move(page_);
  }

 private:
  base::Error fail(std::string_view what) const { return base::fail(base::ErrorKind::kConfig, fmt::format("line {}: {}", number_, what)); }

  base::Status take(std::string_view line) {
    if (line.starts_with("```")) return fence(line);
    if (commands_) {
      if (base::trim(line).empty()) return fail("an empty line among commands");
      if (std::string_view slot = unknown_slot(line); !slot.empty())
        return fail(fmt::format("{} is no slot; codes/README.md lists them", slot));
      add_line("$ " + std::string(line));
      return base::ok();
    }
    if (line.starts_with("# ")) {
      if (number_ != 1) return fail("the title is the first line");
      page_.title = plain(line.substr(2));
      return base::ok();
    }
    if (line.starts_with("#")) return heading(line);
    if (base::trim(line).empty()) {
      in_paragraph_ = false;
      return base::ok();
    }
    if (!section_) return fail("text before the first heading");
    if (base::trim(line).starts_with("$ ")) return fail("a command outside a block of commands");
    if (in_paragraph_) *section_ += " " + plain(line);
    else add_line(plain(line));
    in_paragraph_ = true;
    return base::ok();
  }

  base::Status fence(std::string_view line) {
    if (!section_) return fail("commands before the first heading");
    if (section_ != &page_.fix) return fail("commands outside the section that says what to do");
    if (line != (commands_ ? "```" : "```sh")) return fail("a block of commands begins with ```sh and ends with ```");
    commands_ = !commands_;
    in_paragraph_ = false;
    return base::ok();
  }

  base::Status heading(std::string_view line) {
    TRY(end_section());
    for (; next_ < kSections.size(); ++next_)
      if (kSections[next_].heading.in(language_) == line) {
        section_ = &(page_.*kSections[next_++].text);
        in_paragraph_ = false;
        return base::ok();
      }
    return fail(fmt::format("\"{}\" is no heading of a page, or not in its order", line));
  }

  base::Status end_section() {
    if (section_ && section_->empty()) return fail("the section before this line is empty");
    return base::ok();
  }

  void add_line(const std::string& line) { *section_ += (section_->empty() ? "" : "\n") + line; }
  static std::string plain(std::string_view line) { return base::replace_all(base::trim(line), "\\<", "<"); }

  Language language_;
  Page page_;
  std::string* section_ = nullptr;
  size_t number_ = 0, next_ = 0;
  bool commands_ = false, in_paragraph_ = false;
};

}  // namespace

base::Result<Page> parse_page(std::string_view text, Language language) { return Parser(language).parse(text); }

}  // namespace phalanx::codes
