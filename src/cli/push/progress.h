// What `push` says while it goes on, and the table at its end: hosts that are equally far stand together.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "base/language.h"
#include "job/copy/copy_to_hosts.h"
#include "os/clock.h"

namespace phalanx::cli {

class PushProgress {
 public:
  // terminal: one line is written again and again; else a line now and then.
  PushProgress(base::Language language, bool terminal, bool quiet) : language_(language), terminal_(terminal), quiet_(quiet) {}
  ~PushProgress() { clear(); }
  PushProgress(const PushProgress&) = delete;
  PushProgress& operator=(const PushProgress&) = delete;

  void read(uint64_t bytes);  // of the directory: so many more
  void sent(const std::vector<job::CopyState>& hosts, os::Mono now);
  void clear();  // the line goes

  // "gpu[01-02] 45 %, gpu03 done; 1.2 GB of 3.0 GB, 300 MB/s, 6 s left". bytes_per_s: 0: not known yet.
  static std::string line(const std::vector<job::CopyState>& hosts, double bytes_per_s, base::Language language);

 private:
  void show(const std::string& text, os::Mono now);

  base::Language language_;
  bool terminal_, quiet_, shown_ = false;
  uint64_t read_ = 0;
  os::Mono last_ = os::mono_now();
  struct Sample {
    os::Mono at;
    uint64_t sent = 0;
  };
  std::deque<Sample> samples_;  // of the last seconds
};

// "gpu[01-02]: 3 files, 1.2 MB sent in 0.4 s (3.0 MB/s)", a line for hosts with the same numbers.
std::string push_table(const std::vector<job::CopiedHost>& hosts, base::Language language);

}  // namespace phalanx::cli
