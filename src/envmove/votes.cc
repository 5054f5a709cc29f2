#include "envmove/votes.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "envmove/below.h"
#include "envmove/prefix.h"
#include "os/fd.h"
#include "os/files.h"

namespace phalanx::envmove {
namespace {

constexpr size_t kHead = 4 << 10;  // of a script
constexpr size_t kMostFileBytes = 1 << 20;
constexpr size_t kMostCandidates = 64;

bool is_of_the_system(std::string_view prefix) {
  constexpr std::string_view kSystem[] = {"", "/", "/usr", "/usr/local", "/bin", "/opt"};
  return std::find(std::begin(kSystem), std::end(kSystem), prefix) != std::end(kSystem);
}

class Count {
 public:
  explicit Count(const Environment& environment) : environment_(environment) {}

  void file(const File& file) {
    if (file.is_link()) return;
    if (file.path.starts_with("bin/")) script(file);
    if (file.path == "bin/activate" || file.path == "bin/activate.csh" || file.path == "bin/activate.fish") activate(file);
    if (file.path.find("pkgconfig/") != std::string::npos && file.path.ends_with(".pc")) assignment(file, "prefix=", Source::kPkgConfig);
    const size_t slash = file.path.rfind('/');
    if (file.path.compare(slash + 1, 15, "_sysconfigdata_") == 0) sysconfig(file);
    if (file.path == "pyvenv.cfg") venv(file);
  }

  std::vector<Candidate> result() {
    std::sort(all_.begin(), all_.end(),
              [](const Candidate& a, const Candidate& b) { return a.total() != b.total() ? a.total() > b.total() : a.prefix < b.prefix; });
    return std::move(all_);
  }

 private:
  void add(std::string_view prefix, Source source) {
    while (prefix.size() > 1 && prefix.ends_with('/')) prefix.remove_suffix(1);
    if (!prefix.starts_with('/') || is_of_the_system(prefix) || prefix.find('\n') != std::string_view::npos) return;
    if (prefix.find("/$") != std::string_view::npos) return;  // a template
    if (prefix.find("/../") != std::string_view::npos || prefix.ends_with("/..")) return;
    if (is_of_the_base(std::string(prefix))) return;
    auto at = std::find_if(all_.begin(), all_.end(), [&](const Candidate& one) { return one.prefix == prefix; });
    if (at == all_.end()) {
      if (all_.size() >= kMostCandidates) return;
      at = all_.insert(all_.end(), Candidate{std::string(prefix), {}});
    }
    ++at->votes[source];
  }

  // The Python that a venv was made from is none of its places, unless it came along as .python (carry/bundle_base.cc).
  bool is_of_the_base(const std::string& prefix) const {
    return environment_.base.starts_with(prefix + "/") && !environment_.base.starts_with(prefix + "/.python/");
  }

  // "/old/bin/python" of a script, if the environment has that program itself.
  void script(const File& file) {
    auto opened = open_below(environment_, file.path);
    if (!opened.ok()) return;
    std::string head(kHead, '\0');
    auto size = os::read_at(*opened, file.path, 0, head.data(), head.size());
    if (!size.ok()) return;
    head.resize(*size);
    std::optional<Shebang> shebang = read_shebang(head);
    if (!shebang) return;
    const size_t bin = shebang->interpreter.rfind("/bin/");
    if (bin != std::string::npos && environment_.find(shebang->interpreter.substr(bin + 1)))
      add(std::string_view(shebang->interpreter).substr(0, bin), Source::kScript);
  }

  std::string read(const File& file) {
    auto text = read_below(environment_, file.path, kMostFileBytes);
    return text.ok() ? std::move(text->data) : "";
  }

  void assignment(const File& file, std::string_view key, Source source) {
    const std::string text = read(file);
    for (std::string_view line : base::split_lines(text))
      if (line.starts_with(key) && line.find('$') == std::string_view::npos) return add(base::trim(line.substr(key.size())), source);
  }

  void activate(const File& file) {
    const std::string text = read(file);
    for (std::string_view line : base::split_lines(text))
      if (const std::optional<std::string> place = activation_place(line)) add(*place, Source::kActivate);
  }

  // 'prefix': '/old', of the variables Python was built with.
  void sysconfig(const File& file) {
    const std::string text = read(file);
    constexpr std::string_view kKey = "'prefix': '";
    const size_t at = text.find(kKey);
    if (at == std::string::npos) return;
    const size_t begin = at + kKey.size(), end = text.find('\'', begin);
    if (end != std::string::npos) add(std::string_view(text).substr(begin, end - begin), Source::kSysconfig);
  }

  // "command = /usr/bin/python3 -m venv /old".
  void venv(const File& file) {
    const std::string text = read(file);
    for (std::string_view line : base::split_lines(text)) {
      if (!line.starts_with("command = ")) continue;
      const size_t at = line.rfind(" /");
      if (at != std::string_view::npos) add(line.substr(at + 1), Source::kVenvConfig);
    }
  }

  const Environment& environment_;
  std::vector<Candidate> all_;
};

}  // namespace

bool is_the_same_folder(const std::string& a, const std::string& b) {
  struct stat first{}, second{};
  return a == b ||
         (stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0 && first.st_dev == second.st_dev && first.st_ino == second.st_ino);
}

size_t Candidate::total() const {
  size_t sum = 0;
  for (const auto& [source, count] : votes) sum += count;
  return sum;
}

std::vector<Candidate> vote(const Environment& environment) {
  Count count(environment);
  for (const File& file : environment.files) count.file(file);
  return count.result();
}

bool is_gone(const std::string& path) {
  const base::Result<bool> there = os::is_present(path);
  return there.ok() && !*there;
}

std::vector<Candidate> elsewhere(const Environment& environment, const std::vector<Candidate>& candidates) {
  std::vector<Candidate> out;
  std::copy_if(candidates.begin(), candidates.end(), std::back_inserter(out),
               [&](const Candidate& one) { return !is_the_same_folder(one.prefix, environment.root); });
  return out;
}

std::vector<std::string> old_prefixes(const Environment& environment, const std::vector<Candidate>& candidates) {
  const std::vector<Candidate> others = elsewhere(environment, candidates);
  const bool here = others.size() < candidates.size();
  if (others.size() == 1 && !here) return {others.front().prefix};
  std::vector<std::string> sure, unsure;
  for (const Candidate& one : others) {
    // What is not there any more can be no other environment that a script is meant to use.
    const bool gone = !here && one.votes.contains(Source::kScript) && is_gone(one.prefix);
    (one.votes.size() >= 2 || gone ? sure : unsure).push_back(one.prefix);
  }
  // Another name of a sure one: the home of its owner may be a link.
  const std::vector<std::string> named = sure;
  std::copy_if(unsure.begin(), unsure.end(), std::back_inserter(sure), [&](const std::string& one) {
    return std::any_of(named.begin(), named.end(), [&](const std::string& same) { return is_the_same_folder(one, same); });
  });
  return sure;
}

}  // namespace phalanx::envmove
