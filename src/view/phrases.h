// What the view itself says, in both languages.
#pragma once

#include <string_view>

#include "view/speech.h"

namespace phalanx::view {

using Text = std::string_view;

inline constexpr Phrase<Text> kStepPhrase{"step {}", "步 {}"};
inline constexpr Phrase<Text> kLossPhrase{"loss {}", "loss {}"};
inline constexpr Phrase<Text> kTokensPhrase{"{} tok/s", "{} tok/s"};
inline constexpr Phrase<Text> kSpreadPhrase{"ranks {}", "各 rank {}"};
inline constexpr Phrase<Text> kEtaPhrase{"ETA {}", "剩余 {}"};
inline constexpr Phrase<Text, Text> kTimesPhrase{"{} ranks {}", "{} 个 rank：{}"};  // "×15", "1–15"
inline constexpr Phrase<size_t, Text> kSilentPhrase{"{} ranks running, no output for {}", "{} 个 rank 运行中，{} 没有输出"};
inline constexpr Phrase<uint64_t> kDroppedPhrase{
    "lines missing here because they were not read in time: {}; phalanx logs shows all of them",
    "此处因读取不及时缺少 {} 行；phalanx logs 中有完整内容"};
inline constexpr Phrase<Text, Text> kOutputFailedPhrase{"writing to {} failed: {}; the logs of the ranks are complete",
                                                        "写入 {} 失败：{}；各 rank 的日志是完整的"};

}  // namespace phalanx::view
