// What a caller of the library must pass. Where it is not so, functions that return a Result say it in their error; constructors and
// functions without one throw std::invalid_argument from here. Neither ends the caller's program.
#pragma once

#include <fmt/format.h>

#include <stdexcept>

namespace phalanx::engine {

// Throws std::invalid_argument with this text unless it holds. Names the option and the value: "rows is 0; it must be at least 1".
template <class... Values>
void require(bool holds, fmt::format_string<Values...> text, Values&&... values) {
  if (!holds) [[unlikely]]
    throw std::invalid_argument(fmt::format(text, std::forward<Values>(values)...));
}

}  // namespace phalanx::engine
