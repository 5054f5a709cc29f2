// The catalogue: every code with its page. A code names one thing that a check finds, that ends or stalls a run, or that a log shows.
// Codes are permanent: scripts and people remember them.
//
// The pages are data: codes/<part>/<group>/<CODE>.md and <CODE>.zh-CN.md (codes/README.md describes them), compiled into a table when the
// launcher is built. What finds a code is elsewhere: doctor/catalogue.h has the checks, diagnosis/ the rules and signatures.
#pragma once

#include <span>
#include <string_view>

#include "base/language.h"

namespace phalanx::codes {

// Where a code comes from, the first folder of its page.
enum class Part {
  kChecks,        // found before a start, by a check of the doctor
  kRuns,          // seen while a job runs, or in what it has written
  kEnvironments,  // found in a Python environment, moved or not
};

struct Group {
  Part part;
  std::string_view folder;  // "network"
  base::Bilingual title;    // "interfaces, addresses and links"
};

struct Code {
  std::string_view name;     // "NET-WRONG-IFACE"
  const Group* group;        // never null
  base::Bilingual title;     // one line, no full stop: "a port the job needs is taken"
  base::Bilingual question;  // what the check asks: "Is MASTER_PORT free on the host of rank 0?"; only in kChecks
  base::Bilingual why;       // what happens otherwise, with the messages users see; paragraphs are separated by '\n'
  base::Bilingual fix;       // what to do; commands are on lines of their own that start with "$ "
  std::string_view source;   // documents, source files or issues this rests on; may be empty
};

// All codes, group by group, in a group by name. Of kChecks first, then of kRuns. Unpacked at the first call.
std::span<const Code> all();
std::span<const Group> groups();  // in the same order

const Code* find(std::string_view name);  // case-insensitive; null if there is none
// A code that the program names itself; one without a page is a bug (PHALANX_CHECK).
const Code& get(std::string_view name);

}  // namespace phalanx::codes
