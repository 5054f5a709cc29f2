// Packages that stand for a folder elsewhere: pip install -e in its four forms. A copied environment carries the pointer, not
// the folder.
#include <map>

#include "base/json.h"
#include "base/text.h"
#include "machine/software/parts.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostEditables = 64;
constexpr size_t kMostNames = 20'000;
constexpr size_t kMostText = 64 << 10;

class Editables {
 public:
  Editables(const Rooted& files, SoftwareFacts& facts) : files_(files), facts_(facts) {}

  void add(std::string_view package, std::string_view path) {
    if (path.empty() || path[0] != '/' || path.size() > 4096 || facts_.editables.size() >= kMostEditables) return;
    std::string name = normal_package_name(package), plain = plain_path(path);
    for (const Editable& known : facts_.editables)
      if (known.path == plain || (known.package == name && plain.starts_with(known.path + "/"))) return;
    facts_.editables.push_back({name, plain, files_.exists(plain)});
  }

  void direct_url(const std::string& folder, const std::string& entry) {
    std::optional<std::string> text = files_.read(folder + "/" + entry + "/direct_url.json", kMostText);
    if (!text) return;
    base::Result<base::Json> json = base::parse_json(*text, kMostText);
    if (!json.ok() || !json->is_object()) return;
    auto info = json->find("dir_info");
    if (info == json->end() || !info->is_object() || !base::get_bool(*info, "editable").value_or(false)) return;
    std::string url = base::get_string(*json, "url").value_or("");
    if (url.starts_with("file://")) add(entry.substr(0, entry.find('-')), decoded(url.substr(7)));
  }

  // Lines that are paths: __editable__.NAME-1.0.pth, easy-install.pth, and the first line of NAME.egg-link.
  void lines(const std::string& folder, const std::string& entry, std::string_view package) {
    std::optional<std::string> text = files_.read(folder + "/" + entry, kMostText);
    if (!text) return;
    for (std::string_view line : base::split_lines(*text)) {
      line = base::trim(line);
      if (line.starts_with('/') && line != folder) add(package.empty() ? name_of(line) : package, line);
      if (entry.ends_with(".egg-link")) break;
    }
  }

  // __editable___NAME_1_0_finder.py: MAPPING = {'llamafactory': '/src/LLaMA-Factory/src/llamafactory', …}
  void finder(const std::string& folder, const std::string& entry) {
    std::optional<std::string> text = files_.read(folder + "/" + entry, kMostText);
    size_t at = text ? text->find("MAPPING") : std::string::npos;
    size_t open = at == std::string::npos ? at : text->find('{', at);
    size_t close = open == std::string::npos ? open : text->find('}', open);
    if (close == std::string::npos) return;
    std::vector<std::string_view> quoted = base::split(std::string_view(*text).substr(open, close - open), '\'');
    for (size_t i = 1; i + 2 < quoted.size(); i += 4) add(quoted[i], quoted[i + 2]);
  }

 private:
  static std::string decoded(std::string_view url) {  // %20
    std::string text;
    for (size_t i = 0; i < url.size(); ++i) {
      auto digit = [](char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
      };
      if (url[i] == '%' && i + 2 < url.size() && digit(url[i + 1]) >= 0 && digit(url[i + 2]) >= 0) {
        text += static_cast<char>(digit(url[i + 1]) * 16 + digit(url[i + 2]));
        i += 2;
      } else {
        text += url[i];
      }
    }
    return text;
  }

  const Rooted& files_;
  SoftwareFacts& facts_;
};

}  // namespace

void read_editables(const Rooted& files, SoftwareFacts& facts) {
  Editables found(files, facts);
  for (const std::string& folder : facts.site_packages) {
    for (const std::string& entry : files.list(folder, kMostNames)) {
      if (entry.ends_with(".dist-info")) found.direct_url(folder, entry);
      else if (entry.starts_with("__editable__.") && entry.ends_with(".pth"))
        found.lines(folder, entry, std::string_view(entry).substr(13, entry.find('-') - 13));
      else if (entry == "easy-install.pth" || entry.ends_with(".egg-link"))
        found.lines(folder, entry, entry.ends_with(".egg-link") ? entry.substr(0, entry.size() - 9) : "");
      else if (entry.starts_with("__editable___") && entry.ends_with("_finder.py")) found.finder(folder, entry);
    }
  }
}

}  // namespace phalanx::machine
