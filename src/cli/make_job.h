// From what was typed to a job: host lists and files are read, names become targets, variables are collected. Nothing
// is contacted yet.
#pragma once

#include <string>

#include "cli/flags/run_options.h"
#include "job/job.h"

namespace phalanx::cli {

// This machine, as far as a job needs to know it.
struct Here {
  std::string hostname;
  std::vector<std::string> addresses;  // numeric, of all interfaces
  std::string folder;                  // current working directory
  const char* const* environment = nullptr;
};
Here detect_terminal();

// Fills everything but run_id and token.
base::Result<job::Job> make_job(const RunOptions& options, const Here& here);

// True if the name or address is this machine, so that no ssh is needed: localhost, loopback, our host name, our address.
bool is_here(const std::string& address, const Here& here);

}  // namespace phalanx::cli
