// What `run --json` prints on standard output: one object per line. A reader that stops loses objects, never holds up the run: they are
// counted, and {"event":"dropped","objects":N} says so where they are missing.
#pragma once

#include <chrono>
#include <string>

#include "base/json.h"
#include "view/terminal/output.h"

namespace phalanx::cli {

class JsonStream {
 public:
  // live: of a run that goes on; else nothing is dropped.
  JsonStream(os::Loop& loop, int fd, bool live) : output_(loop, fd), live_(live) {
    if (live) output_.decouple();
    output_.on_room([this] { say_dropped(); });
  }

  void print(int64_t wall_ns, const std::string& name, const base::Json& fields);
  // Also to a reader that has stopped.
  void print_last(const std::string& text);
  bool drain(std::chrono::milliseconds most) { return output_.drain(most); }

 private:
  void say_dropped();
  view::Output output_;
  bool live_;
  uint64_t dropped_ = 0;
};

std::string json_line(int64_t wall_ns, const std::string& name, const base::Json& fields);

}  // namespace phalanx::cli
