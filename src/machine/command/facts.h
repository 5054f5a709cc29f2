// What the user's command is made of: the launcher it calls, the script, and every file its words and its configuration
// files name (machine/command/reader.h reads them on each host).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/fields.h"

namespace phalanx::machine {

// A file the command reads before training starts, with its text, so that the doctor can read it too.
struct CommandFile {
  std::string path;  // absolute
  // "script" (Python), "shell", "deepspeed", "accelerate", "llamafactory", "lightning", "dataset_info", "hostfile", "config"
  std::string role;
  std::string named_by;  // "--config_file", "deepspeed: in train.yaml", "the command"
  bool exists = false;
  int64_t size = 0;
  std::string sha256;
  std::string text;   // whole if at most 256 KiB, else empty; values of what looks like a secret are cut
  std::string error;  // why it could not be read
};
PHALANX_FIELDS(CommandFile, path, role, named_by, exists, size, sha256, text, error);

// A path the command or one of its files names: data, model, output.
struct NamedPath {
  std::string path;      // absolute
  std::string role;      // "input", "output", "cache", "any"
  std::string named_by;  // "--data_path", "output_dir in train.yaml"
};
PHALANX_FIELDS(NamedPath, path, role, named_by);

// One program start that was understood: the command itself, or a line of a shell script it runs.
struct LaunchLine {
  std::string launcher;  // "torchrun", "torch.distributed.launch", "accelerate", "deepspeed", "llamafactory", "lightning", "phalanx-train",
                         // "python", "shell", "direct" (a script started by its own name), "": some other program
  std::string file;      // the shell script; empty: the command itself
  int64_t line = 0;      // in it, from 1
  std::string directory;
  std::map<std::string, std::string> variables;  // set in front of it, or exported before in its script; secrets left out
  std::map<std::string, std::string> options;    // the launcher's own: "nproc_per_node" → "2", a flag → ""
  std::string program;                           // what it runs: a script, a module, a YAML file
  bool module = false;
  bool background = false;             // ends in '&'
  std::vector<std::string> arguments;  // of the program; values of secrets cut
};
PHALANX_FIELDS(LaunchLine, launcher, file, line, directory, variables, options, program, module, background, arguments);

// Where a line of a shell script sends its output.
struct ShellOutput {
  std::string file;  // the script
  int64_t line = 0;
  std::string target, folder;  // absolute
  bool folder_exists = false;
  bool folder_made = false;  // by a mkdir of the script
  bool launch = false;       // the line starts a program that trains
};
PHALANX_FIELDS(ShellOutput, file, line, target, folder, folder_exists, folder_made, launch);

struct CommandFacts {
  std::string launcher;              // of the last launch understood: the one that trains; as in LaunchLine
  std::vector<LaunchLine> launches;  // the command first, then those of its shell scripts, at most 32
  std::vector<ShellOutput> outputs;  // at most 32
  std::vector<CommandFile> files;    // at most 32
  std::vector<NamedPath> paths;      // at most 128
  std::string git_head;              // commit checked out in the folder the script lies in
};
PHALANX_FIELDS(CommandFacts, launcher, launches, outputs, files, paths, git_head);

}  // namespace phalanx::machine
