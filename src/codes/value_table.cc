#include "codes/value_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::codes {
namespace {

struct Column {
  std::string_view name, kind;
};

class Parser {
 public:
  explicit Parser(const std::set<std::string>& codes) : codes_(codes) {}

  base::Result<ParsedTable> parse(std::string_view text) {
    for (std::string_view line : base::split_lines(text)) {
      ++number_;
      if (line.starts_with("#")) continue;
      TRY(columns_.empty() ? header(line) : row(line));
    }
    if (table_.cells.empty()) return fail("a table needs a line of columns, and rows");
    return std::move(table_);
  }

 private:
  base::Error fail(std::string_view what) const { return base::fail(base::ErrorKind::kConfig, fmt::format("line {}: {}", number_, what)); }

  base::Status header(std::string_view line) {
    for (std::string_view cell : base::split(line, '\t')) {
      size_t colon = cell.find(':');
      if (colon == cell.npos || colon == 0 || colon + 1 == cell.size()) return fail(fmt::format("\"{}\" is not name:kind", cell));
      Column column{cell.substr(0, colon), cell.substr(colon + 1)};
      bool known = column.kind.find('|') != cell.npos || column.kind == "int" || column.kind == "code" || column.kind == "text" ||
                   column.kind == "word";
      if (!known) return fail(fmt::format("\"{}\" is no kind of column", column.kind));
      columns_.push_back(column);
    }
    table_.columns = columns_.size();
    return base::ok();
  }

  base::Status row(std::string_view line) {
    if (!base::is_utf8(line)) return fail("the row is not UTF-8");
    std::vector<std::string_view> cells = base::split(line, '\t');
    if (cells.size() != columns_.size()) return fail(fmt::format("{} cells for {} columns", cells.size(), columns_.size()));
    for (size_t i = 0; i < cells.size(); ++i) {
      if (!fits(cells[i], columns_[i].kind)) return fail(fmt::format("{}: \"{}\" is not {}", columns_[i].name, cells[i], columns_[i].kind));
      table_.cells.emplace_back(cells[i]);
    }
    if (!rows_.emplace(line).second) return fail("the row is there twice");
    return base::ok();
  }

  bool fits(std::string_view cell, std::string_view kind) const {
    if (kind == "text") return true;
    if (cell.empty()) return false;
    if (kind == "code") return codes_.count(std::string(cell)) > 0;
    if (kind == "word") return cell.find(' ') == cell.npos;
    if (kind == "int") {
      int64_t value = 0;
      auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
      return error == std::errc() && end == cell.data() + cell.size();
    }
    std::vector<std::string_view> allowed = base::split(kind, '|');
    return std::find(allowed.begin(), allowed.end(), cell) != allowed.end();
  }

  const std::set<std::string>& codes_;
  ParsedTable table_;
  std::vector<Column> columns_;
  std::set<std::string> rows_;
  size_t number_ = 0;
};

}  // namespace

base::Result<ParsedTable> parse_value_table(std::string_view text, const std::set<std::string>& codes) { return Parser(codes).parse(text); }

}  // namespace phalanx::codes
