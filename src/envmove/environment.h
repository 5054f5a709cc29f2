// What an environment is, from its files alone: no Python, no conda and no package cache is asked. Formats: conda-meta/*.json (conda,
// core/prefix_data.py), pyvenv.cfg (PEP 405), *.dist-info (PyPA "Recording installed projects"), direct_url.json (PEP 610).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "envmove/tree.h"
#include "os/fd.h"

namespace phalanx::envmove {

enum class Kind { kConda, kVenv };  // conda: also mamba, micromamba and pixi; venv: also virtualenv and uv

struct Package {
  std::string name, version, build;  // build: conda's only
  bool conda = false;
};

// What conda's record of a package says of one installed file.
struct Managed {
  std::string placeholder;  // what stood in the package where the prefix stands now, usually 255 bytes; empty: the file holds no prefix
  bool binary = false;
  std::string sha256;  // sha256_in_prefix, of the file as installed; empty in old records
  std::string packed;  // sha256, of the file as it was in the package, with the placeholder
  std::string record;  // "conda-meta/python-3.11.7-h1234_0.json"
};

// A package whose code lies elsewhere.
struct Editable {
  std::string name;    // of the package, or of the file that leads there
  std::string source;  // an absolute path
  std::string file;    // below the root: what holds the path
};

struct Environment {
  std::string root;                      // absolute, without a final slash, as it was typed: links in it are not resolved
  std::shared_ptr<const os::Fd> folder;  // the root, open (below.h)
  Kind kind = Kind::kConda;
  std::string python;  // "3.11.7"; empty: it has none
  std::string base;    // venv: the folder of the interpreter it was made from
  bool uses_packages_of_base = false;
  std::vector<File> files;
  std::map<std::string, Managed> managed;  // by path
  std::vector<Package> packages;           // by name
  std::vector<Editable> editables;
  std::vector<std::string> unread;  // records that could not be understood, as "path: why"
  uint64_t bytes = 0;               // of files; two names of one file count once
  std::string foreign;              // of Tree, as an absolute path, or such a folder above the root; empty: nobody else can change it

  const File* find(std::string_view path) const;
};

// Error kConfig: no such folder, or neither kind.
base::Result<Environment> read_environment(const std::string& root);

// "llm": the folder of that environment in the places where conda, mamba, micromamba and virtualenvwrapper keep theirs, and in
// ~/.conda/environments.txt. A word with a slash, or one that is a folder here, is a path. Error kUsage lists the names there are.
base::Result<std::string> find_environment(const std::string& word);

// "3.11" of "3.11.7" and of "3.11.7.final.0"; empty: not a version of both numbers.
std::string minor_version(std::string_view version);

// SHA-256 over Python's version and the sorted names and versions of all packages: equal where the same code is installed.
std::string fingerprint(const Environment& environment);

}  // namespace phalanx::envmove
