// What the verbs of phalanx-env share: whom they speak to, and how.
#pragma once

#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#include "base/language.h"
#include "envmove/environment.h"
#include "os/clock.h"

namespace phalanx::envcli {

// As the launcher chooses it (base/language.h).
base::Language language_here();

// What a terminal would obey is shown, not sent.
void print(std::FILE* to, const std::string& text);

// "conda", "venv": for people and for JSON.
std::string kind_words(const envmove::Environment& environment);

// An indented line each; without `whole` the first 20, and how many more there are.
std::string list_of(const std::vector<std::string>& all, bool whole, base::Language language);

// A line of files read, rewritten a few times a second on a terminal; nothing elsewhere.
class ProgressLine {
 public:
  ProgressLine(std::string what, base::Language language);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void operator()(size_t done, size_t of);  // from any thread

 private:
  std::string what_;
  base::Language language_;
  bool shown_, drawn_ = false;
  os::Mono last_;
  std::mutex mutex_;
};

}  // namespace phalanx::envcli
