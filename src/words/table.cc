#include "words/table.h"

#include <string>

#include "base/check.h"
#include "base/gzip.h"
#include "base/text.h"

namespace phalanx::words {
namespace {

std::string unpack() {
  const PackedTable packed = packed_table();
  base::Result<std::string> text = base::gunzip(packed.member, packed.size);
  PHALANX_CHECK(text.ok() && text->size() == packed.size);  // else the build is broken
  return std::move(text).value();
}

Table index_of(std::string_view text) {
  Table table;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\0', at);
    table.english.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  const auto middle = table.english.begin() + static_cast<std::ptrdiff_t>(table.english.size() / 2);
  table.chinese.assign(middle, table.english.end());
  table.english.erase(middle, table.english.end());
  return table;
}

}  // namespace

const Table& table() {
  static const std::string text = unpack();
  static const Table table = index_of(text);
  return table;
}

}  // namespace phalanx::words
