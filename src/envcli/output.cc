#include "envcli/output.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
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

std::string list_of(const std::vector<std::string>& all, bool whole, std::string_view flag, base::Language language) {
  std::string out;
  const size_t shown = whole ? all.size() : std::min(all.size(), kShown);
  for (size_t i = 0; i < shown; ++i) out += "  " + all[i] + "\n";
  if (shown == all.size()) return out;
  return out +
         (flag.empty() ? tr(language, "  and {} more", all.size() - shown)
                       : tr(language, "  and {} more ({} lists all)", all.size() - shown, flag)) +
         "\n";
}

base::Result<std::string> plain_place(const std::string& path) {
  std::string plain;
  for (std::string_view name : base::split(path, '/')) {
    if (name == ".." || !path.starts_with('/'))
      return base::fail(base::ErrorKind::kUsage, fmt::format("{} is not an absolute path without ..", base::quote(path)));
    if (!name.empty() && name != ".") plain += "/" + std::string(name);
  }
  if (plain.empty()) return base::fail(base::ErrorKind::kUsage, "the root directory can hold no environment");
  return plain;
}

std::string index_folder() {
  const std::string home = os::environment_value("HOME");
  const std::string cache = os::environment_value("XDG_CACHE_HOME", home.empty() ? "" : home + "/.cache");
  return cache.starts_with('/') ? cache + "/phalanx/sync-index" : "";
}

// Why the Python of a venv stays; empty: nobody would expect otherwise.
static std::string why_base_stays(envmove::BaseStays why, base::Language language) {
  using envmove::BaseStays;
  switch (why) {
    case BaseStays::kNo:
    case BaseStays::kSystem: break;
    case BaseStays::kConda: return tr(language, "it belongs to a conda environment");
    case BaseStays::kLinked: return tr(language, "it finds its library only at its present path");
    case BaseStays::kUnread: return tr(language, "a file of it cannot be read");
    case BaseStays::kUnknown: return tr(language, "it is not laid out as Pythons are that can be moved");
    case BaseStays::kLarge: return tr(language, "it has more than 1 GB or 60,000 files");
  }
  return "";
}

void say_what_is_special(const envmove::Carried& carried, const std::string& base, base::Language language) {
  std::string out;
  if (carried.base)
    out += tr(language, "phalanx: the Python of the venv, {}, comes along as {} ({} files, {})", carried.base->source, carried.base->place,
              carried.base->files, base::format_bytes(carried.base->bytes)) +
           "\n";
  if (const std::string why = why_base_stays(carried.base_stays, language); !why.empty())
    out += tr(language,
              "phalanx: warning: the Python of the venv has to be on the other machine too, at the same path: {}; it does not come along "
              "because {}",
              base, why) +
           "\n";
  for (const envmove::Bundled& one : carried.bundled)
    out += tr(language, "phalanx: the editable install {} comes along as {} ({} files, {})", one.source, one.place, one.files,
              base::format_bytes(one.bytes)) +
           "\n";
  for (const envmove::Editable& one : carried.left_behind)
    out += tr(language, "phalanx: warning: the code of the editable install {} is missing here: {}", one.name, one.source) + "\n";
  if (!carried.untouched.empty())
    out += tr(language, "phalanx: {} files of other formats name the place of the environment and are sent as they are; the first is {}",
              carried.untouched.size(), carried.untouched.front()) +
           "\n";
  print(stderr, out);
}

void say_if_activate_fails(const std::string& place, base::Language language) {
  if (place.find(':') != std::string::npos)
    print(stderr,
          tr(language, "phalanx: warning: {} has a colon, so PATH cannot name it and activating it does nothing; start {}/bin/python",
             place, place) +
              "\n");
}

ProgressLine::ProgressLine(std::string what, base::Language language)
    : what_(std::move(what)), language_(language), shown_(isatty(2) == 1) {}

ProgressLine::~ProgressLine() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

void ProgressLine::operator()(size_t done, size_t of) {
  if (!shown_) return;
  std::lock_guard lock(mutex_);
  draw(tr(language_, "{} of {} files", done, of));
}

void ProgressLine::bytes(uint64_t more) {
  if (!shown_) return;
  std::lock_guard lock(mutex_);
  bytes_ += more;
  draw(base::format_bytes(bytes_));
}

void ProgressLine::draw(const std::string& how_far) {
  constexpr os::nanoseconds kBetween = os::milliseconds(200);
  if (drawn_ && os::mono_now() - last_ < kBetween) return;
  last_ = os::mono_now();
  drawn_ = true;
  std::fputs(("\r\033[K" + what_ + " " + how_far).c_str(), stderr);
}

}  // namespace phalanx::envcli
