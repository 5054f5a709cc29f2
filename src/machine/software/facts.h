// The Python environment the command would use, found without starting Python, and the variables the ranks would get.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace phalanx::machine {

struct Editable {
  std::string package;
  std::string path;
  bool exists = false;
};
template <typename V>
void fields(V& v, Editable& f) {
  v("package", f.package);
  v("path", f.path);
  v("exists", f.exists);
}

// A script whose first line cannot work, or leaves its environment.
struct BadShebang {
  std::string script;       // "/opt/conda/envs/llm/bin/torchrun"
  std::string interpreter;  // what its first line names
  std::string why;          // "does not exist", "is another environment's", "is longer than 127 bytes"
};
template <typename V>
void fields(V& v, BadShebang& f) {
  v("script", f.script);
  v("interpreter", f.interpreter);
  v("why", f.why);
}

struct LibraryFile {
  std::string path;
  std::string version;  // from its own text, "2.18.1+cuda12.1"
};
template <typename V>
void fields(V& v, LibraryFile& f) {
  v("path", f.path);
  v("version", f.version);
}

// A package that two folders of sys.path hold: the first hides the other.
struct HiddenPackage {
  std::string package;
  std::string version, folder;                // what is imported
  std::string hidden_version, hidden_folder;  // what the environment holds
};
template <typename V>
void fields(V& v, HiddenPackage& f) {
  v("package", f.package);
  v("version", f.version);
  v("folder", f.folder);
  v("hidden_version", f.hidden_version);
  v("hidden_folder", f.hidden_folder);
}

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
template <typename V>
void fields(V& v, SoftwareFacts& f) {
  v("program", f.program);
  v("program_error", f.program_error);
  v("bad_first_line", f.bad_first_line);
  v("interpreter", f.interpreter);
  v("prefix", f.prefix);
  v("environment_kind", f.environment_kind);
  v("python", f.python);
  v("assumed", f.assumed);
  v("site_packages", f.site_packages);
  v("packages", f.packages);
  v("fingerprint", f.fingerprint);
  v("user_site", f.user_site);
  v("hidden", f.hidden);
  v("torch_cuda", f.torch_cuda);
  v("torch_git", f.torch_git);
  v("torch_archs", f.torch_archs);
  v("torch_folder", f.torch_folder);
  v("torch_nccl", f.torch_nccl);
  v("nccl", f.nccl);
  v("nccl_ways", f.nccl_ways);
  v("cuda_libraries", f.cuda_libraries);
  v("glibc_needed", f.glibc_needed);
  v("glibc_needed_by", f.glibc_needed_by);
  v("editables", f.editables);
  v("shebangs", f.shebangs);
  v("stale_locks", f.stale_locks);
  v("environment", f.environment);
  v("secrets_set", f.secrets_set);
  v("wandb_login", f.wandb_login);
  v("nccl_conf", f.nccl_conf);
  v("nccl_conf_file", f.nccl_conf_file);
}

}  // namespace phalanx::machine
