// What the user's command is made of: the launcher it calls, the script, and every file its words and its configuration
// files name (command.h reads them on each host).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace host {

// A file the command reads before training starts, with its text, so that the doctor can read it too.
struct CommandFile {
  std::string path;  // absolute
  std::string
      role;  // "script" (Python), "shell", "deepspeed", "accelerate", "llamafactory", "lightning", "dataset_info", "hostfile", "config"
  std::string named_by;  // "--config_file", "deepspeed: in train.yaml", "the command"
  bool exists = false;
  int64_t size = 0;
  std::string sha256;
  std::string text;   // at most 256 KiB
  std::string error;  // why it could not be read
};
template <typename V>
void fields(V& v, CommandFile& f) {
  v("path", f.path);
  v("role", f.role);
  v("named_by", f.named_by);
  v("exists", f.exists);
  v("size", f.size);
  v("sha256", f.sha256);
  v("text", f.text);
  v("error", f.error);
}

// A path the command or one of its files names: data, model, output.
struct NamedPath {
  std::string path;      // absolute
  std::string role;      // "input", "output", "cache", "any"
  std::string named_by;  // "--data_path", "output_dir in train.yaml"
};
template <typename V>
void fields(V& v, NamedPath& f) {
  v("path", f.path);
  v("role", f.role);
  v("named_by", f.named_by);
}

struct CommandFacts {
  std::string launcher;  // "torchrun", "accelerate", "deepspeed", "llamafactory-cli", "lightning", "python", "shell", ""
  std::vector<CommandFile> files;
  std::vector<NamedPath> paths;
  std::string git_head;  // of the folder the script lies in
  bool git_dirty = false;
};
template <typename V>
void fields(V& v, CommandFacts& f) {
  v("launcher", f.launcher);
  v("files", f.files);
  v("paths", f.paths);
  v("git_head", f.git_head);
  v("git_dirty", f.git_dirty);
}

}  // namespace host
