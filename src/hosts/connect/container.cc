#include "hosts/connect/container.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "base/unicode.h"

namespace phalanx::hosts {
namespace {

using Kind = Container::Kind;

struct Row {
  Kind kind;
  const char* word;
  const char* engine;
};
constexpr std::array kRows = {
    Row{Kind::kDocker, "docker", "docker"},
    Row{Kind::kPodman, "podman", "podman"},
    Row{Kind::kDockerImage, "docker-image", "docker"},
    Row{Kind::kPodmanImage, "podman-image", "podman"},
    Row{Kind::kApptainer, "apptainer", "apptainer"},
    Row{Kind::kCommand, "command", ""},
};

const Row* row_of(std::string_view text) {
  for (const Row& row : kRows)
    if (text.size() > std::string_view(row.word).size() && text.starts_with(row.word) && text[std::string_view(row.word).size()] == ':')
      return &row;
  return nullptr;
}

const Row* row_of(Kind kind) {
  for (const Row& row : kRows)
    if (row.kind == kind) return &row;
  return nullptr;
}

bool is_word(std::string_view text, std::string_view others) {
  auto plain = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || others.find(c) != std::string_view::npos;
  };
  return !text.empty() && plain(text[0]) && others.find(text[0]) == std::string_view::npos && std::all_of(text.begin(), text.end(), plain);
}

base::Error refuse(std::string_view text, std::string why, std::string hint) {
  return base::fail(base::ErrorKind::kUsage, fmt::format("{} is not a container: {}", base::quote(base::printable(text, 200)), why))
      .with_hint(std::move(hint));
}

}  // namespace

const char* Container::engine() const {
  const Row* row = row_of(kind);
  return row ? row->engine : "";
}

bool is_container_text(std::string_view text) { return row_of(text) != nullptr; }

base::Result<Container> parse_container(std::string_view text) {
  const Row* row = row_of(text);
  if (!row)
    return refuse(text, "it does not begin with the kind of container",
                  "docker:NAME, podman:NAME, docker-image:IMAGE, podman-image:IMAGE, apptainer:FILE or command:'PREFIX {}'");
  if (text.size() > kLongestContainer) return refuse(text, base::counted("it is longer than {} bytes", kLongestContainer), "shorten it");
  Container out{.kind = row->kind, .what = std::string(text.substr(std::string_view(row->word).size() + 1))};
  const bool control = std::any_of(out.what.begin(), out.what.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  switch (out.kind) {
    case Kind::kDocker:
    case Kind::kPodman:
      if (!is_word(out.what, "_.-"))
        return refuse(text, "names consist of letters, digits, '_', '.' and '-'", row->engine + std::string(" ps"));
      break;
    case Kind::kDockerImage:
    case Kind::kPodmanImage:
      if (!is_word(out.what, "_.-/:@+"))
        return refuse(text, "images are REPOSITORY:TAG, REPOSITORY@DIGEST or an id", row->engine + std::string(" images"));
      break;
    case Kind::kApptainer:
      if (control || !out.what.starts_with('/') || out.what.find_first_of(",:") != std::string::npos)
        return refuse(text, "the SIF file needs an absolute path without ',' and ':', the same on every host",
                      "write apptainer:/path/to/image.sif");
      break;
    default:
      if (control || out.what.find("{}") == std::string::npos)
        return refuse(text, "the line has no {}, which stands for the command that starts the agent",
                      "write command:'chroot /srv/root {}'");
  }
  return out;
}

std::string to_text(const Container& container) {
  const Row* row = row_of(container.kind);
  return row ? std::string(row->word) + ":" + container.what : "";
}

}  // namespace phalanx::hosts
