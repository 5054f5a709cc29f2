// Where an environment lay before it was moved: its own files say so.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "envmove/environment.h"

namespace phalanx::envmove {

enum class Source { kScript, kPkgConfig, kSysconfig, kActivate, kVenvConfig };

// A prefix that some files name as the environment's own.
struct Candidate {
  std::string prefix;
  std::map<Source, size_t> votes;  // files of each kind

  size_t total() const;
};

// Also where one of the two leads to the other by a link.
bool is_the_same_folder(const std::string& a, const std::string& b);

// By falling votes. The environment's present place is among them if its files name it: then it was made, or already repaired, here.
// Places that belong to the system (/usr, /usr/local) and a venv's base are none.
std::vector<Candidate> vote(const Environment& environment);

// Known not to exist; false where nobody can tell.
bool is_gone(const std::string& path);

// Those of them that are not where the environment lies.
std::vector<Candidate> elsewhere(const Environment& environment, const std::vector<Candidate>& candidates);

// The old prefixes that can be replaced without asking: what two kinds of files name, other names of such a folder, the only one that any
// file names, or, if none names the present place, what scripts name and is not there any more. Never the present place. May be empty:
// nothing was moved, or nobody can tell.
std::vector<std::string> old_prefixes(const Environment& environment, const std::vector<Candidate>& candidates);

}  // namespace phalanx::envmove
