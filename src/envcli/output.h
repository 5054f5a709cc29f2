// What the verbs of phalanx-env share: whom they speak to, and how.
#pragma once

#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#include "base/language.h"
#include "base/result.h"
#include "envmove/carry/carry.h"
#include "envmove/environment.h"
#include "os/clock.h"

namespace phalanx::envcli {

// As the launcher chooses it (base/language.h).
base::Language language_here();

// What a terminal would obey is shown, not sent.
void print(std::FILE* to, const std::string& text);

// "conda", "venv": for people and for JSON.
std::string kind_words(const envmove::Environment& environment);

// An indented line each; without `whole` the first 20, how many more there are, and the flag that lists all, if there is one.
std::string list_of(const std::vector<std::string>& all, bool whole, std::string_view flag, base::Language language);

// An absolute path without "." and empty names. Error kUsage: it is not absolute, has "..", or is the root directory.
base::Result<std::string> plain_place(const std::string& path);
// Where the launcher keeps the hashes of what it pushes (docs/formats/sync-store.md); empty: no cache is known.
std::string index_folder();
// Of an environment that is about to be sent or packed: what comes along, what is missing, and what stays as it is.
void say_what_is_special(const envmove::Carried& carried, const std::string& base, base::Language language);
// Of a place that PATH cannot name.
void say_if_activate_fails(const std::string& place, base::Language language);

// A line of files read, rewritten a few times a second on a terminal; nothing elsewhere.
class ProgressLine {
 public:
  ProgressLine(std::string what, base::Language language);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void operator()(size_t done, size_t of);  // from any thread
  void bytes(uint64_t more);                // of files read: so many more

 private:
  void draw(const std::string& how_far);

  std::string what_;
  base::Language language_;
  bool shown_, drawn_ = false;
  uint64_t bytes_ = 0;
  os::Mono last_;
  std::mutex mutex_;
};

}  // namespace phalanx::envcli
