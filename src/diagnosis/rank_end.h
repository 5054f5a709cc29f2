// How one rank ended, read from all that is known of it: its status, what it said last, what the kernel said. Pure.
//
// What it said is read as logs are (diagnosis/logs/signature.h). A victim is a rank whose words say only that another one is gone: its
// connection was closed, its collective timed out or was aborted. It is never the cause while another end explains it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "wire/messages.h"

namespace phalanx::diagnosis {

struct RankEnd {
  int status = 0;               // as from waitpid
  std::string_view last_words;  // the end of its stderr
  std::string_view error_file;  // TORCHELASTIC_ERROR_FILE: {"message": …}
  std::span<const wire::ExitSign> signs = {};
};

struct EndReading {
  std::string_view code;  // of codes/
  bool victim = false;
  std::string evidence;  // one line: "ValueError: bad batch", "kernel: Out of memory: Killed process …"; may be empty
  std::string where;     // innermost frame of the user's own code: "train.py:42 (step)"; may be empty
  bool symptom = false;  // of a victim: something broke on this rank (a loader's worker died, a watchdog's time passed)
};

EndReading read_end(const RankEnd& end);

// The message of a TORCHELASTIC_ERROR_FILE: {"message": {"message": "ValueError: x", …}} or {"message": "…"}; empty if there is none.
std::string error_file_message(std::string_view text);

}  // namespace phalanx::diagnosis
