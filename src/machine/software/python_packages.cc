#include <map>

#include "base/sha256.h"
#include "base/text.h"
#include "machine/software/parts.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostNames = 20'000;  // in one site folder
constexpr size_t kMostHidden = 64;
constexpr size_t kMostPackages = 5000;
constexpr size_t kMetadataHead = 16 << 10;

struct Found {
  std::string name, version;
};

bool starts_a_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

// "Name:" and "Version:" of the headers; the first of each counts, and headers end at an empty line.
Found read_metadata(const Rooted& files, const std::string& file) {
  Found found;
  std::optional<std::string> text = files.read(file, kMetadataHead);
  if (!text) return found;
  for (std::string_view line : base::split_lines(*text)) {
    if (line.empty()) break;
    if (found.name.empty() && line.starts_with("Name:")) found.name = base::trim(line.substr(5, 256));
    if (found.version.empty() && line.starts_with("Version:")) found.version = base::trim(line.substr(8, 256));
  }
  return found;
}

// What a folder's entry says of a package; nothing for other entries and for pip's leftovers ("~orch-2.1.0.dist-info").
Found package_of(const Rooted& files, const std::string& folder, const std::string& entry) {
  bool wheel = entry.ends_with(".dist-info");
  if ((!wheel && !entry.ends_with(".egg-info")) || !starts_a_name(entry[0])) return {};
  std::string_view stem = std::string_view(entry).substr(0, entry.size() - (wheel ? 10 : 9));
  size_t dash = stem.find('-');
  if (dash != std::string_view::npos) {
    std::string_view version = stem.substr(dash + 1);
    if (!wheel) version = version.substr(0, version.find("-py"));
    if (!version.empty()) return {std::string(stem.substr(0, dash)), std::string(version)};
  }
  std::string at = folder + "/" + entry;
  Found found = read_metadata(files, at + (wheel ? "/METADATA" : "/PKG-INFO"));
  if (found.name.empty()) found.name = stem.substr(0, dash);
  return found;
}

}  // namespace

std::string normal_package_name(std::string_view name) {
  std::string normal;
  for (char c : base::to_lower(name)) {
    if (c == '_' || c == '.') c = '-';
    if (c != '-' || normal.empty() || normal.back() != '-') normal += c;
  }
  return normal;
}

void read_packages(const Rooted& files, SoftwareFacts& facts) {
  std::map<std::string, std::string> folder_of_package;
  for (const std::string& folder : facts.site_packages) {
    std::map<std::string, std::string> here;  // a folder with two versions of one package (a broken upgrade) keeps the later name
    for (const std::string& entry : files.list(folder, kMostNames)) {
      Found found = package_of(files, folder, entry);
      if (!found.name.empty() && found.version.size() < 256) here[normal_package_name(found.name)] = found.version;
    }
    for (auto& [name, version] : here) {
      auto [known, fresh] = facts.packages.emplace(name, version);
      if (facts.packages.size() > kMostPackages) return;
      if (fresh) folder_of_package[name] = folder;
      else if (known->second != version && facts.hidden.size() < kMostHidden)
        facts.hidden.push_back({name, known->second, folder_of_package[name], version, folder});
    }
  }
  std::string all = "python==" + facts.python + "\n";
  for (const auto& [name, version] : facts.packages) all.append(name).append("==").append(version).append("\n");
  facts.fingerprint = base::sha256_hex(all);
}

}  // namespace phalanx::machine
