// The two forms of a RAS report (ras.h), and the limits they share.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/unicode.h"
#include "diagnosis/hang/ras.h"

namespace phalanx::diagnosis {

inline constexpr size_t kMostRasCommunicators = 1 << 14;
inline constexpr size_t kMostRasMembers = 1 << 18;  // over all communicators
inline constexpr int kMostRasRank = 1 << 22;

inline std::string ras_text_kept(std::string_view text) { return base::printable(text, 80); }

RasReport read_ras_text(std::string_view text);
RasReport read_ras_json(const base::Json& json);  // an object

}  // namespace phalanx::diagnosis
