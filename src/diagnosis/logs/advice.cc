#include "diagnosis/logs/advice.h"

#include <algorithm>

#include "codes/advice.h"

namespace phalanx::diagnosis {

void add_advice(LogCause& cause) {
  constexpr size_t kMostAdvice = 2;
  for (auto evidence = cause.evidence.rbegin(); evidence != cause.evidence.rend(); ++evidence)
    for (const codes::Advice& one : codes::all_advice()) {
      const bool known =
          std::any_of(cause.advice.begin(), cause.advice.end(), [&](const doctor::Words& w) { return w.english == one.english; });
      if (known || !codes::has_words(evidence->text, one.words)) continue;
      cause.advice.push_back({std::string(one.english), std::string(one.chinese)});
      if (cause.advice.size() == kMostAdvice) return;
    }
}

}  // namespace phalanx::diagnosis
