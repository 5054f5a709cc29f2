#include "codes/packed.h"

#include <deque>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/gzip.h"

namespace phalanx::codes {

std::string_view unpack(const Packed& packed) {
  static std::deque<std::string> kept;
  base::Result<std::string> text = base::gunzip(packed.member, packed.size);
  PHALANX_CHECK(text.ok() && text->size() == packed.size);
  return kept.emplace_back(std::move(text).value());
}

std::string_view next_cell(std::string_view& row) {
  size_t end = row.find('\t');
  std::string_view cell = row.substr(0, end);
  row.remove_prefix(end == row.npos ? row.size() : end + 1);
  return cell;
}

}  // namespace phalanx::codes
