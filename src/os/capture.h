// Runs a program that may hang or crash and keeps what it wrote, also when it did not get to the end.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::os {

struct CaptureSpec {
  std::string program;                   // path; or, with an image, the name for error messages
  std::string_view image;                // an ELF program in memory, run instead of `program`: from a memory file, else from a private file
  std::vector<std::string> arguments;    // argv, argv[0] included
  std::vector<std::string> environment;  // "K=V"
  std::chrono::milliseconds deadline{1000};
  size_t most_bytes = 4 << 20;  // of standard output; the rest is thrown away
};

struct Captured {
  std::string output;  // standard output so far
  bool started = false;
  bool timed_out = false;
  int exit_code = -1;  // if it ended by itself
  std::string fault;   // empty: it ended with 0. "no answer for 1.0 s; its process is in state D, …", "killed by SIGSEGV", "exit code 9"
};

// Standard input and errors are /dev/null. The child is killed at the deadline, and when the calling process dies.
Captured capture(const CaptureSpec& spec);

}  // namespace phalanx::os
