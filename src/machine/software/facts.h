// The Python environment the command would use, found without starting Python, and the variables the ranks would get.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/fields.h"

namespace phalanx::machine {

struct Editable {
  std::string package;
  std::string path;
  bool exists = false;
};
PHALANX_FIELDS(Editable, package, path, exists);

// A script whose first line cannot work, or leaves its environment.
struct BadShebang {
  std::string script;       // "/opt/conda/envs/llm/bin/torchrun"
  std::string interpreter;  // what its first line names
  std::string why;          // "does not exist", "is another environment's", "is longer than 127 bytes"
};
PHALANX_FIELDS(BadShebang, script, interpreter, why);

struct LibraryFile {
  std::string path;
  std::string version;  // from its own text, "2.18.1+cuda12.1"
};
PHALANX_FIELDS(LibraryFile, path, version);

// A package that two folders of sys.path hold: the first hides the other.
struct HiddenPackage {
  std::string package;
  std::string version, folder;                // what is imported
  std::string hidden_version, hidden_folder;  // what the environment holds
};
PHALANX_FIELDS(HiddenPackage, package, version, folder, hidden_version, hidden_folder);

struct SoftwareFacts {
  std::string program;                          // the file argv[0] stands for, absolute
  std::string program_error;                    // why there is none
  bool bad_first_line = false;                  // it is a script, and its interpreter is missing
  std::string interpreter;                      // the Python it would run, symlinks followed; empty: not Python
  std::string prefix;                           // of the environment: the folder above bin/
  std::string environment_kind;                 // "conda", "venv", "system", ""
  std::string python;                           // "3.11.2"; "3.11" if no more could be found out
  bool assumed = false;                         // the command is a shell script, or there is none: the Python of PATH
  std::vector<std::string> site_packages;       // folders searched, in order
  std::map<std::string, std::string> packages;  // name (normalised: lower case, '-') → version, of all *.dist-info and *.egg-info
  std::string fingerprint;                      // SHA-256 over sorted "name==version" and python
  std::string user_site;                        // the folder below ~/.local that is searched too; empty: not used
  std::vector<HiddenPackage> hidden;            // of differing versions, at most 64
  std::string torch_cuda;                       // "12.1", "cpu" (from torch/version.py), empty: no torch
  std::string torch_git;
  std::vector<std::string> torch_archs;     // "sm_80", "sm_86", "compute_90": from the fat binary of libtorch_cuda.so
  std::string torch_folder;                 // that holds version.py
  std::string torch_nccl;                   // "dynamic": libtorch_cuda needs libnccl.so.2; "static": built in; "": not known
  std::vector<LibraryFile> nccl;            // every libnccl.so* reachable, the one the loader picks first
  std::vector<std::string> nccl_ways;       // how each of them is found: "RPATH of libtorch_cuda.so", "LD_LIBRARY_PATH"
  std::vector<LibraryFile> cuda_libraries;  // CUDA's own in LD_LIBRARY_PATH; version from the file's name, "12.1.105"
  std::string glibc_needed;                 // the highest of the interpreter's and torch's libraries, "2.28"
  std::string glibc_needed_by;              // the file
  std::vector<Editable> editables;
  std::vector<BadShebang> shebangs;                // of bin/* in prefix: at most 32
  std::vector<std::string> stale_locks;            // torch_extensions lock files without a living owner
  std::map<std::string, std::string> environment;  // NCCL_*, TORCH_*, CUDA_*, … as a rank would get them; secrets left out
  std::vector<std::string> secrets_set;            // names of variables whose values are not collected
  bool wandb_login = false;                        // ~/.netrc has an entry for wandb
  std::map<std::string, std::string> nccl_conf;    // lines of the conf files that NCCL would read; blanks in names are kept
  std::string nccl_conf_file;                      // those that exist, ", " between them
};
PHALANX_FIELDS(SoftwareFacts, program, program_error, bad_first_line, interpreter, prefix, environment_kind, python, assumed, site_packages,
               packages, fingerprint, user_site, hidden, torch_cuda, torch_git, torch_archs, torch_folder, torch_nccl, nccl, nccl_ways,
               cuda_libraries, glibc_needed, glibc_needed_by, editables, shebangs, stale_locks, environment, secrets_set, wandb_login,
               nccl_conf, nccl_conf_file);

}  // namespace phalanx::machine
