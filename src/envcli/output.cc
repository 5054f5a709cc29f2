#include "envcli/output.h"

#include <unistd.h>

#include <algorithm>

#include "base/unicode.h"
#include "os/files.h"
#include "words/message.h"

namespace phalanx::envcli {

using words::tr;

namespace {

constexpr size_t kShown = 20;  // of a list, unless it is wanted whole

}  // namespace

base::Language language_here() {
  return base::choose_language(os::environment_value("PHALANX_LANG"), os::environment_value("LC_ALL"), os::environment_value("LC_MESSAGES"),
                               os::environment_value("LANG"));
}

void print(std::FILE* to, const std::string& text) {
  const std::string safe = base::printable_lines(text);
  std::fwrite(safe.data(), 1, safe.size(), to);
  std::fflush(to);
}

std::string kind_words(const envmove::Environment& environment) { return environment.kind == envmove::Kind::kConda ? "conda" : "venv"; }

std::string list_of(const std::vector<std::string>& all, bool whole, base::Language language) {
  std::string out;
  const size_t shown = whole ? all.size() : std::min(all.size(), kShown);
  for (size_t i = 0; i < shown; ++i) out += "  " + all[i] + "\n";
  if (shown < all.size()) out += tr(language, "  and {} more (--dry-run lists all)", all.size() - shown) + "\n";
  return out;
}

ProgressLine::ProgressLine(std::string what, base::Language language)
    : what_(std::move(what)), language_(language), shown_(isatty(2) == 1) {}

ProgressLine::~ProgressLine() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

void ProgressLine::operator()(size_t done, size_t of) {
  if (!shown_) return;
  std::lock_guard lock(mutex_);
  constexpr os::nanoseconds kBetween = os::milliseconds(200);
  if (drawn_ && os::mono_now() - last_ < kBetween) return;
  last_ = os::mono_now();
  drawn_ = true;
  std::fputs(("\r\033[K" + what_ + " " + tr(language_, "{} of {} files", done, of)).c_str(), stderr);
}

}  // namespace phalanx::envcli
