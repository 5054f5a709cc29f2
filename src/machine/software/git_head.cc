#include "base/text.h"
#include "machine/command/paths.h"
#include "machine/command/reader.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMaxRefs = 4 << 20;

std::string first_line(const std::string& path, size_t max_bytes = 4096) {
  auto text = os::read_file(path, max_bytes);
  return text.ok() ? std::string(base::trim(text->substr(0, text->find('\n')))) : "";
}

bool is_commit(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// gitrepository-layout(5): HEAD holds a commit or "ref: NAME"; a ref is a file, or a line of packed-refs; work trees share both
// through the folder that `commondir` names.
std::string resolve(const std::string& root, const std::string& git) {
  std::string head = first_line(root + git + "/HEAD");
  if (is_commit(head)) return head;
  if (!head.starts_with("ref: ") || head.find("..") != std::string::npos) return "";
  std::string name = head.substr(5), shared = first_line(root + git + "/commondir");
  std::string store = shared.empty() ? git : absolute_path(shared, git, "");
  for (const std::string& folder : {git, store})
    if (std::string commit = first_line(root + folder + "/" + name); is_commit(commit)) return commit;
  auto packed = os::read_file(root + store + "/packed-refs", kMaxRefs);
  if (!packed.ok()) return "";
  for (std::string_view line : base::split_lines(*packed)) {
    std::vector<std::string_view> words = base::split_words(line);
    if (words.size() == 2 && words[1] == name && is_commit(words[0])) return std::string(words[0]);
  }
  return "";
}

}  // namespace

std::string git_head(const std::string& root, const std::string& folder) {
  std::string at = absolute_path(folder, "/", "");
  for (int levels = 0; levels < 32; ++levels) {
    std::string git = (at == "/" ? "" : at) + "/.git";
    if (os::is_folder(root + git)) return resolve(root, git);
    if (std::string link = first_line(root + git); link.starts_with("gitdir: "))
      return resolve(root, absolute_path(link.substr(8), at, ""));
    if (at == "/") return "";
    at = at.substr(0, std::max<size_t>(at.find_last_of('/'), 1));
  }
  return "";
}

}  // namespace phalanx::machine
