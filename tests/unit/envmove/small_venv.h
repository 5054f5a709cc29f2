// Small environments on a real disk, for the tests of rehome and verify.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "envmove/packages.h"
#include "envmove/rehome.h"
#include "envmove/verify.h"
#include "envmove/votes.h"

namespace phalanx::small_venv {

namespace fs = std::filesystem;

inline void write(const fs::path& path, std::string_view content) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}
inline std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline constexpr const char* kSite = "lib/python3.11/site-packages";

// A venv as pip leaves it, made for `home`, with `scripts` entry points.
inline void make_venv(const fs::path& root, const std::string& home, int scripts) {
  write(root / "pyvenv.cfg", "home = /usr/bin\nversion = 3.11.7\ncommand = /usr/bin/python3 -m venv " + home + "\n");
  write(root / "bin/activate", "VIRTUAL_ENV=\"" + home + "\"\n");
  fs::create_symlink("/usr/bin/python3", root / "bin/python");
  std::string record = "tool/__init__.py,,\n";
  for (int i = 0; i < scripts; ++i) {
    const std::string script = "#!" + home + "/bin/python\nprint(" + std::to_string(i) + ")\n";
    write(root / ("bin/tool" + std::to_string(i)), script);
    record += "../../../bin/tool" + std::to_string(i) + "," + envmove::record_hash(base::sha256_hex(script)) + "," +
              std::to_string(script.size()) + "\n";
  }
  write(root / kSite / "tool/__init__.py", "x = 1\n");
  write(root / kSite / "tool-1.0.dist-info/METADATA", "Name: tool\n");
  write(root / kSite / "tool-1.0.dist-info/RECORD", record + "tool-1.0.dist-info/RECORD,,\n");
  write(root / kSite / "other.pyc", home + "/x");
  write(root / "share/cache.db", std::string("SQLite\0", 7) + home);
}

inline std::map<std::string, std::string> content_of(const fs::path& root) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string name = entry.path().lexically_relative(root);
    if (entry.is_symlink()) all[name] = "-> " + fs::read_symlink(entry.path()).string();
    else if (entry.is_regular_file()) all[name] = read(entry.path());
  }
  return all;
}

inline base::Result<envmove::Plan> plan_of(const envmove::Environment& environment) {
  envmove::Move move{envmove::old_prefixes(environment, envmove::vote(environment)), environment.root};
  return envmove::plan_rehome(environment, std::move(move), {});
}

inline envmove::Plan repair(const std::string& root) {
  auto environment = envmove::read_environment(root);
  EXPECT_TRUE(environment.ok()) << environment.error().render();
  auto plan = plan_of(*environment);
  EXPECT_TRUE(plan.ok()) << plan.error().render();
  auto done = envmove::carry_out(*environment, *plan, {});
  EXPECT_TRUE(done.ok()) << done.error().render();
  return std::move(*plan);
}

inline std::vector<std::string> flaws_of(const std::string& root) {
  auto environment = envmove::read_environment(root);
  auto flaws = envmove::verify(*environment, {.start_python = false}, {});
  EXPECT_TRUE(flaws.ok()) << flaws.error().render();
  std::vector<std::string> out;
  for (const envmove::Flaw& flaw : *flaws)
    out.push_back(std::string(flaw.code) + " " + fs::path(flaw.path).lexically_relative(root).string());
  return out;
}

}  // namespace phalanx::small_venv
