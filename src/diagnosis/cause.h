// What can have broken or hung a run: one row per cause a verdict can name. A row is everything there is to a code: its words, its page
// (`phalanx explain CODE`), its line in the docs. Codes are permanent, as those of the doctor's catalogue, and differ from them.
//
// The doctor looks before a start; here is what only shows while a job runs, or in what it has written. Where a log line is the trace of
// something the doctor has a row for ("a port is taken"), the doctor's code is used and there is no row here.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/language.h"

namespace diagnosis {

struct Cause {
  std::string_view code;    // "HANG-NEVER-ENTERED"
  base::Bilingual title;    // one line, no full stop: "a rank never entered the collective that the others wait in"
  base::Bilingual why;      // what it is, and what users see of it; paragraphs separated by '\n'
  base::Bilingual fix;      // what to do, commands on lines of their own that start with "$ "
  std::string_view source;  // documents, source files or issues this rests on; may be empty
};

// All rows, one function per file causes_<group>.cc.
std::span<const Cause> end_causes();   // RUN-, HOST-: how ranks and hosts end
std::span<const Cause> hang_causes();  // HANG-: why a run stands still
std::span<const Cause> slow_causes();  // SLOW-: why it is slower than it need be
std::span<const Cause> nccl_causes();  // NCCL-: what its log and its RAS service tell
// What logs tell (phalanx explain FILE).
std::span<const Cause> log_gpu_causes();
std::span<const Cause> log_network_causes();
std::span<const Cause> log_meeting_causes();
std::span<const Cause> log_software_causes();
std::span<const Cause> log_data_causes();
std::span<const Cause> log_program_causes();
std::span<const Cause> log_only_causes();  // LOG-: consequences, harmless lines

// In the order in which they are listed and documented, under headings.
struct CauseGroup {
  base::Bilingual title;  // "how ranks and hosts end"
  std::span<const Cause> rows;
};
std::vector<CauseGroup> cause_groups();

std::vector<const Cause*> causes();
const Cause* find_cause(std::string_view code);  // case-insensitive; null if there is none

}  // namespace diagnosis
