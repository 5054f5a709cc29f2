// For schedulers that wait for torchrun's error file: where the launcher itself has TORCHELASTIC_ERROR_FILE, the cause of a failed run is
// written there, as torchrun does (torch/distributed/elastic/multiprocessing/errors/error_handler.py, dump_error_file). Pure.
#pragma once

#include <string>

namespace phalanx::cli {

// from_rank: what the failed rank left in its own error file, may be empty or no JSON; then the file says `message`. It gets the exit code
// of the rank either way.
std::string elastic_error(const std::string& from_rank, const std::string& message, int exit_code, long long unix_seconds);

}  // namespace phalanx::cli
