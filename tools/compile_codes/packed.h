// Text → a gzip member as C++, for src/codes/packed.h.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace phalanx::codes {

// The definition of packed_<name>(). Error (kInternal): zlib has no memory.
base::Result<std::string> packed_source(std::string_view name, std::string_view text);

// One row: cells joined by tabs. Error (kConfig): a cell holds a tab or a line end.
base::Result<std::string> packed_row(const std::vector<std::string>& cells);

// Rows as packed_row() makes them, column by column, a cell a line: like stands next to like, which compresses better where the cells of a
// column resemble each other.
std::string by_columns(std::string_view rows, size_t width);

// All rows of a folder's tables, as packed_row() makes them. columns: "words, line, en"; row: is given the name of the file without its
// ending and the cells. Error (kConfig): another file, another table, or what `row` says, with the file.
using PackRow = std::function<base::Result<std::string>(const std::string& file, const std::vector<std::string>& cells)>;
base::Result<std::string> packed_rows(const std::filesystem::path& folder, std::string_view columns, const PackRow& row);

}  // namespace phalanx::codes
