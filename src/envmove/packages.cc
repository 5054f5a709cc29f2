#include "envmove/packages.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "envmove/below.h"

namespace phalanx::envmove {
namespace {

using base::ErrorKind;
using base::Json;

constexpr size_t kMostRecordBytes = 64 << 20;  // cudatoolkit and the like list tens of thousands of files
constexpr size_t kMostPointerBytes = 1 << 20;
constexpr size_t kLongestPlaceholder = 1024;

std::string_view folder_of(std::string_view path) { return path.substr(0, std::min(path.rfind('/'), path.size())); }
std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_hex_digest(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

class Reader {
 public:
  explicit Reader(Environment& environment) : out_(environment) {}

  void all() {
    for (const File& file : out_.files) {
      if (file.is_link()) continue;
      if (file.path.starts_with("conda-meta/") && file.path.ends_with(".json")) conda(file);
      else if (file.path.ends_with(".dist-info/METADATA") || file.path.ends_with(".dist-info/RECORD")) dist_info(file);
      else if (file.path.ends_with(".dist-info/direct_url.json")) direct_url(file);
      else if (file.path.ends_with(".egg-link")) lines(file, name_of(file.path).substr(0, name_of(file.path).size() - 9));
      else if (file.path.ends_with(".pth") && folder_of(file.path).ends_with("-packages")) lines(file, name_of(file.path));
    }
    auto before = [](const Package& a, const Package& b) {
      return std::tie(a.name, a.conda, a.version) < std::tie(b.name, b.conda, b.version);
    };
    auto same = [](const Package& a, const Package& b) { return a.name == b.name && a.version == b.version && a.conda == b.conda; };
    std::sort(out_.packages.begin(), out_.packages.end(), before);
    out_.packages.erase(std::unique(out_.packages.begin(), out_.packages.end(), same), out_.packages.end());
  }

 private:
  std::optional<std::string> read(const File& file, size_t most) {
    auto text = read_below(out_, file.path, most);
    if (text.ok()) return std::move(text->data);
    out_.unread.push_back(file.path + ": " + text.error().message);
    return std::nullopt;
  }

  void conda(const File& file) {
    std::optional<std::string> text = read(file, kMostRecordBytes);
    if (!text) return;
    base::Result<CondaRecord> record = parse_conda_record(*text);
    if (!record.ok()) {
      out_.unread.push_back(file.path + ": " + record.error().message);
      return;
    }
    out_.packages.push_back(record->package);
    for (CondaRecord::Path& one : record->paths) {
      one.managed.record = file.path;
      out_.managed[one.path] = std::move(one.managed);
    }
  }

  void dist_info(const File& file) {
    if (std::optional<Package> package = package_of_dist_info(name_of(folder_of(file.path)))) out_.packages.push_back(std::move(*package));
  }

  void direct_url(const File& file) {
    std::optional<std::string> text = read(file, kMostPointerBytes);
    if (!text) return;
    base::Result<Json> json = base::parse_json(*text);
    if (!json.ok() || !json->is_object()) {
      out_.unread.push_back(file.path + ": not a JSON object");
      return;
    }
    auto info = json->find("dir_info");
    if (info == json->end() || !info->is_object() || !base::get_bool(*info, "editable").value_or(false)) return;
    const std::string source = path_of_url(base::get_string(*json, "url").value_or(""));
    std::optional<Package> package = package_of_dist_info(name_of(folder_of(file.path)));
    if (!source.empty()) out_.editables.push_back({package ? package->name : std::string(folder_of(file.path)), source, file.path});
  }

  // Each absolute path on a line of its own; "import …" lines of a .pth are code.
  void lines(const File& file, std::string_view name) {
    std::optional<std::string> text = read(file, kMostPointerBytes);
    if (!text) return;
    for (std::string_view line : base::split_lines(*text)) {
      std::string_view path = base::trim(line);
      if (path.starts_with("/")) out_.editables.push_back({std::string(name), std::string(path), file.path});
    }
  }

  Environment& out_;
};

}  // namespace

void read_packages(Environment& environment) { Reader(environment).all(); }

std::string path_of_url(std::string_view url) {
  if (!url.starts_with("file:///")) return "";
  std::string out;
  for (size_t i = 7; i < url.size(); ++i) {
    unsigned value = 0;
    if (url[i] == '%' && i + 2 < url.size() && std::sscanf(std::string(url.substr(i + 1, 2)).c_str(), "%2x", &value) == 1 && value > 0) {
      out += static_cast<char>(value);
      i += 2;
    } else {
      out += url[i];
    }
  }
  return out;
}

std::string url_of_path(std::string_view path) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out = "file://";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::strchr("/_.-~", c);
    if (plain && c != '\0') out += c;
    else (out += '%') += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return out;
}

base::Result<CondaRecord> parse_conda_record(std::string_view text) {
  TRY_ASSIGN(Json json, base::parse_json(text, kMostRecordBytes));
  if (!json.is_object()) return base::fail(ErrorKind::kConfig, "not a JSON object");
  CondaRecord out;
  out.package = {base::get_string(json, "name").value_or(""), base::get_string(json, "version").value_or(""),
                 base::get_string(json, "build").value_or(""), true};
  if (out.package.name.empty()) return base::fail(ErrorKind::kConfig, "it names no package");
  auto data = json.find("paths_data");
  if (data == json.end() || !data->is_object() || !data->contains("paths") || !(*data)["paths"].is_array()) return out;
  for (const Json& entry : (*data)["paths"]) {
    if (!entry.is_object()) continue;
    std::string path = base::get_string(entry, "_path").value_or("");
    Managed managed;
    managed.placeholder = base::get_string(entry, "prefix_placeholder").value_or("");
    if (path.empty() || resolve("", path) != path) continue;
    if (managed.placeholder.size() > kLongestPlaceholder) return base::fail(ErrorKind::kConfig, "a placeholder of more than 1024 bytes");
    managed.binary = base::get_string(entry, "file_mode").value_or("") == "binary";
    managed.sha256 = base::get_string(entry, "sha256_in_prefix").value_or("");
    managed.packed = base::get_string(entry, "sha256").value_or("");
    if (!is_hex_digest(managed.sha256)) managed.sha256.clear();
    if (managed.placeholder.empty() && managed.sha256.empty()) continue;
    out.paths.push_back({std::move(path), std::move(managed)});
  }
  return out;
}

std::optional<Package> package_of_dist_info(std::string_view folder) {
  constexpr std::string_view kEnd = ".dist-info";
  if (!folder.ends_with(kEnd)) return std::nullopt;
  folder.remove_suffix(kEnd.size());
  const size_t dash = folder.find('-');
  if (dash == 0 || dash == std::string_view::npos) return std::nullopt;
  Package out{base::to_lower(folder.substr(0, dash)), std::string(folder.substr(dash + 1)), "", false};
  for (char& c : out.name)
    if (c == '_' || c == '.') c = '-';
  return out;
}

std::string resolve(std::string_view folder, std::string_view path) {
  std::vector<std::string> parts;
  if (path.starts_with("/")) return "";
  for (std::string_view text : {folder, path})
    for (std::string_view part : base::split(text, '/')) {
      if (part.empty() || part == ".") continue;
      if (part != "..") {
        parts.emplace_back(part);
        continue;
      }
      if (parts.empty()) return "";
      parts.pop_back();
    }
  return base::join(parts, "/");
}

}  // namespace phalanx::envmove
