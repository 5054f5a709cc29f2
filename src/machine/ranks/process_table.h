// The processes of /proc, each looked at once and cheaply; every scan has a budget, because a machine may have very many.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "os/clock.h"

namespace phalanx::machine {

// Of /proc/<pid>/stat (proc(5)).
struct ProcessStat {
  std::string comm;
  char state = '?';
  int64_t parent = 0, session = 0, threads = 0;
  int64_t start_ticks = 0;  // after boot
};
bool parse_stat(std::string_view text, ProcessStat& stat);
bool read_stat(const std::string& root, int64_t pid, ProcessStat& stat);  // false: there is no such process

// Calls `visit` for every process until it returns false. False if the budget ended first.
bool each_process(const std::string& root, os::milliseconds budget, const std::function<bool(int64_t pid, const ProcessStat&)>& visit);

// Threads of all processes of this user; 0 if the scan did not end in time.
int64_t count_threads(const std::string& root, uid_t uid);

// Arguments, separated by blanks, at most 200 bytes. What follows a word that names a secret (key, token, secret, password, credential)
// is shown as "…".
std::string command_line(const std::string& root, int64_t pid);
std::string hide_secrets(std::string_view zero_separated);

// NAME=value pairs; empty if it may not be read. At most 1 MiB.
std::map<std::string, std::string> environment_of(const std::string& root, int64_t pid);

int64_t age_s(const std::string& root, const ProcessStat& stat);

// Name of a user in /etc/passwd, else "uid 1000". The C library's way would load foreign name services.
std::string user_name(const std::string& root, uid_t uid);
// Owner of /proc/<pid>.
uid_t owner_of(const std::string& root, int64_t pid);

}  // namespace phalanx::machine
