// A screen drawn as an SVG: a window with a title, one text element per run of equal style, placed by column so that it is
// right in any monospace font. No script, no external font, no animation. Pure.
#pragma once

#include <string>
#include <string_view>

#include "term_svg/screen.h"

namespace phalanx::term_svg {

// `columns` wide; rows as far as the last one with something in it.
std::string to_svg(const std::vector<Row>& rows, size_t columns, std::string_view title);

}  // namespace phalanx::term_svg
