// What one rank does, read from its samples; and what its stack text says. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/finding.h"
#include "machine/ranks/sample.h"

namespace phalanx::diagnosis {

enum class Doing {
  kUnknown,
  kFrozen,      // by a cgroup freezer
  kStopped,     // state T
  kTraced,      // state t: under a debugger
  kDisk,        // waits for storage in the kernel
  kSwapping,    // its memory is read back from swap
  kCollective,  // waits in a collective
  kStore,       // waits for a key of the store
  kConnecting,  // a TCP connection that nobody answers
  kLoader,      // waits for a process it has started, or a pipe to one
  kLock,        // waits for a lock or a queue of its own program
  kSleeping,    // sleeps for a time
  kReading,     // waits for a descriptor
  kRunning,     // uses the CPU
};

struct Activity {
  Doing doing = Doing::kUnknown;
  std::string op;       // kCollective: which, as far as the stack tells: "gloo::barrier", "libtorch_cpu.so!+0x446ceb4"
  std::string op_name;  // the same for people: "gloo::barrier", empty where it has no name
  doctor::Words words;  // "sleeps (clock_nanosleep)", "waits for a lock of its own program"
  int64_t pid = 0;      // of the process it is about
};

// then: the later sample. first may be null: CPU and faults since then are not known.
Activity activity_of(const machine::RankSample* first, const machine::RankSample& then, double between_s);

// The innermost frame outside of libc. Frames further out may be left from an earlier call, this one is not. Empty: there is none.
std::string_view caller_of_libc(const machine::ThreadSample& thread);

// The thread waits, by its innermost frames, in a call of a communication library or of the store's client.
bool waits_for_ranks(const machine::ThreadSample& thread);

// The place in the user's program: "train.py:42 (validate)", from the text of faulthandler or py-spy: the innermost frame of the main
// thread outside of the Python library and packages. Empty: none found.
std::string place_in(std::string_view stack_text);

// The same of the Python frames that were read from outside (machine/python/frames.h), of the process that trains.
std::string place_of(const machine::RankSample& sample);

// A function in a frame "module!function"; a frame's module.
std::string_view function_in(std::string_view frame);
std::string_view module_in(std::string_view frame);

}  // namespace phalanx::diagnosis
