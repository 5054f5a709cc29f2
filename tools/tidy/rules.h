// The rules of HACKING.md that a machine can hold. Each takes text and gives findings; none touches a file, so each has
// its own test (tests/unit/tidy). Limits are hard limits: the house aims at half of them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tidy/source.h"

namespace phalanx::tidy {

inline constexpr int kMaxHeaderLines = 200;
inline constexpr int kMaxSourceLines = 400;
inline constexpr int kMaxMainLines = 100;  // src/main_*.cc: tables of contents
inline constexpr int kMaxFunctionLines = 69;
inline constexpr int kMaxFolderFiles = 40;
inline constexpr int kMaxColumns = 140;  // in code points; Markdown is free

// Lengths of lines, files and functions; white space; markers of unfinished work; names; header hygiene; sleeping.
std::vector<Finding> check_text(const Source& source);
std::vector<Finding> check_names(const Source& source);
std::vector<Finding> check_functions(const Source& source);
std::vector<Finding> check_header(const Source& source);
std::vector<Finding> check_banned(const Source& source);
// The sentences in the string literals of src/, and the Chinese of words/: docs/STYLE.md and docs/STYLE.zh-CN.md, as far as a program
// can tell.
std::vector<Finding> check_words(const Source& source);
// The texts of src/ have their Chinese in words/zh-CN/, which holds no others and fits the arguments (src/words/message.h).
std::vector<Finding> check_catalogue(const std::vector<Source>& sources);
// Every sentence of an error of src/ is in words/zh-CN/, too: errors are looked up when they are shown (src/words/said.h).
std::vector<Finding> check_errors(const std::vector<Source>& sources);
// Chinese in src/: text belongs to words/zh-CN/. A few sources have it as data (catalogue_rules.cc).
std::vector<Finding> check_chinese(const Source& source);
// What is declared below src/ lies in phalanx::, and a header's macros begin with PHALANX_ (base/try.h is for our own sources): the engine
// is a library, and other people's programs have names of their own.
std::vector<Finding> check_namespace(const Source& source);

// Which folder of src/ may include which. The picture is the phalanx_folder(NAME DEP…) lines of src/CMakeLists.txt, bottom
// up; a folder may also include what its dependencies may. The engine's inner layers are here, in layers.cc.
struct Layers {
  std::map<std::string, std::set<std::string>> below;  // folder → every folder it may include from, itself included
  std::vector<Finding> findings;                       // a line that names a folder not yet declared: a layer upside down
};
Layers parse_layers(std::string_view cmake);
std::vector<Finding> check_includes(const Source& source, const Layers& layers);

// The first fenced block of HACKING.md is a tree of folders, each with a word of explanation. `folders` are those that
// exist under src/ and directly under tests/ ("src/os"): every one must be in the tree, and the tree names none that is not there.
std::vector<Finding> check_house(const Source& hacking, const std::set<std::string>& folders);

// No folder of src/ holds more than kMaxFolderFiles files. `paths`: every file and folder, from the root.
std::vector<Finding> check_folder_sizes(const std::set<std::string>& paths);

// The two READMEs have headings of the same levels in the same order, and the same commands.
std::vector<Finding> check_readmes(const Source& english, const Source& chinese);

// A Markdown link to a place in the checkout leads somewhere. `paths`: every file and folder, from the root.
std::vector<Finding> check_links(const Source& source, const std::set<std::string>& paths);

// Files, folders and codes named in prose exist (how names are recognised: mentions.cc).
struct Known {
  // Every end of every path that begins a part of it, with and without ".md" and the like; the tests that ctest knows ("docs/readme").
  std::set<std::string, std::less<>> names;
  std::set<std::string, std::less<>> folders;  // directly in src/ and src/engine/
  std::set<std::string> codes;                 // of the catalogue, by its pages
};
// paths: every file and folder, from the root. sources: the build files among them define the tests.
Known known_of(const std::set<std::string>& paths, const std::vector<Source>& sources);
std::vector<Finding> check_mentions(const Source& source, const Known& known);

// The first fenced block behind the heading "## Layers" of ARCHITECTURE.md has a line "folder folder → folder folder" for each folder,
// whose arrows lead, over several steps too, to all folders it may include from and to no other.
std::vector<Finding> check_layers_picture(const Source& architecture, const Layers& layers);

}  // namespace phalanx::tidy
