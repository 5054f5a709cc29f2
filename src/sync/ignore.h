// The patterns of .gitignore files, with git's meaning (gitignore(5)): later patterns win over earlier ones and deeper files over those
// above; `!` takes a name back in, but nothing below a folder that is left out; a `/` at the beginning or in the middle anchors a pattern
// to the folder of its file; a `/` at the end means folders only; `**` stands for any number of folders.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace phalanx::sync {

class IgnorePattern {
 public:
  // One line of a file. Empty for a blank line and a comment.
  static std::vector<IgnorePattern> parse(std::string_view text);
  // path: relative to the folder of the file, without a '/' at either end.
  bool matches(std::string_view path, bool folder) const;
  bool negated() const { return negated_; }

 private:
  std::vector<std::string> segments_;
  bool negated_ = false;
  bool folders_only_ = false;
};

// One shell pattern against one name without '/': '*', '?', '[a-z]', '[!a]', '[[:alpha:]]', and '\' before a byte that stands for itself.
// Time: at most pattern × name steps.
bool name_matches(std::string_view pattern, std::string_view name);

// The files that apply at one place of the tree, outermost first. Copied on the way down: a folder's own file ends with the folder.
class IgnoreRules {
 public:
  // folder: of the file, relative to the root of the walk and "" for the root itself; above: the root lies so in the folder of the file,
  // which is an ancestor of it.
  void add(std::string folder, std::string_view text, std::string above = "");
  // path: relative to the root. The parent of path is not left out itself.
  bool leaves_out(std::string_view path, bool folder) const;

 private:
  struct File {
    std::string folder, above;
    std::vector<IgnorePattern> patterns;
  };
  std::vector<File> files_;
};

}  // namespace phalanx::sync
