// The Python environment the command would use, found without starting Python, and the variables the ranks would get.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace host {

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

struct SoftwareFacts {
  std::string program;                          // the file argv[0] stands for, absolute
  std::string program_error;                    // why there is none
  std::string interpreter;                      // the Python it would run, symlinks followed; empty: not Python
  std::string prefix;                           // of the environment: the folder above bin/
  std::string environment_kind;                 // "conda", "venv", "system", ""
  std::string python;                           // "3.11.2"
  std::vector<std::string> site_packages;       // folders searched, in order
  std::map<std::string, std::string> packages;  // name (normalised: lower case, '-') → version, of all *.dist-info and *.egg-info
  std::string fingerprint;                      // SHA-256 over sorted "name==version" and python
  std::string torch_cuda;                       // "12.1", "cpu" (from torch/version.py), empty: no torch
  std::string torch_git;
  std::vector<std::string> torch_archs;  // "sm_80", "sm_86", "compute_90": from the fat binary of libtorch_cuda.so
  std::vector<LibraryFile> nccl;         // every libnccl.so* reachable, the one the loader picks first
  std::vector<Editable> editables;
  std::vector<BadShebang> shebangs;                // of bin/* in prefix: at most 32
  std::vector<std::string> stale_locks;            // torch_extensions lock files without a living owner
  std::map<std::string, std::string> environment;  // NCCL_*, TORCH_*, CUDA_*, … as a rank would get them; secrets left out
  std::map<std::string, std::string> nccl_conf;    // lines of the conf file that NCCL would read
  std::string nccl_conf_file;
};
template <typename V>
void fields(V& v, SoftwareFacts& f) {
  v("program", f.program);
  v("program_error", f.program_error);
  v("interpreter", f.interpreter);
  v("prefix", f.prefix);
  v("environment_kind", f.environment_kind);
  v("python", f.python);
  v("site_packages", f.site_packages);
  v("packages", f.packages);
  v("fingerprint", f.fingerprint);
  v("torch_cuda", f.torch_cuda);
  v("torch_git", f.torch_git);
  v("torch_archs", f.torch_archs);
  v("nccl", f.nccl);
  v("editables", f.editables);
  v("shebangs", f.shebangs);
  v("stale_locks", f.stale_locks);
  v("environment", f.environment);
  v("nccl_conf", f.nccl_conf);
  v("nccl_conf_file", f.nccl_conf_file);
}

}  // namespace host
