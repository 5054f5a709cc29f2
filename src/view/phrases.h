// What the view itself says, in both languages.
#pragma once

#include <string_view>

#include "view/speech.h"

namespace phalanx::view {

inline constexpr Phrase<std::string_view> kStepPhrase{"step {}"};
inline constexpr Phrase<std::string_view> kLossPhrase{"loss {}"};
inline constexpr Phrase<std::string_view> kSpreadPhrase{"ranks {}"};
inline constexpr Phrase<std::string_view> kEtaPhrase{"ETA {}"};
inline constexpr Phrase<std::string_view, std::string_view> kTimesPhrase{"{} ranks {}"};  // "×15", "1–15"
inline constexpr Phrase<size_t, std::string_view> kSilentPhrase{"{} ranks running, no output for {}"};
inline constexpr Phrase<size_t> kNoOutputPhrase{"{} ranks running, no output yet"};
inline constexpr Phrase<uint64_t> kDroppedPhrase{
    "lines missing here because they were not read in time: {}; phalanx logs shows all of them"};
inline constexpr Phrase<std::string_view, std::string_view> kOutputFailedPhrase{
    "writing to {} failed: {}; the logs of the ranks are complete"};

}  // namespace phalanx::view
