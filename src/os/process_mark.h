// Which process it is, in words that stay true: a pid alone names another process after a while, and on another machine.
#pragma once

#include <cstdint>
#include <string>

namespace phalanx::os {

struct ProcessMark {
  std::string machine_id;     // of the installation (/etc/machine-id); clones of one image may share it, containers have none
  std::string boot_id;        // of the machine's kernel, since it was booted
  std::string pid_namespace;  // in which the pid counts: "pid:[4026531836]"
  int64_t pid = 0;
  int64_t started = 0;  // ticks after the boot: proc(5), stat, field 22
};

ProcessMark own_mark();

// Whether it was a process of this machine before its last boot: nothing of that time lives. Clones of one image may share the machine's
// id, so whoever removes something because of this asks for the machine's name as well.
bool is_of_earlier_boot(const ProcessMark& mark);

enum class Lives { kYes, kNo, kUnknown };
// kUnknown: it is of another machine, another boot or another container, or the mark is incomplete.
Lives lives(const ProcessMark& mark);

}  // namespace phalanx::os
