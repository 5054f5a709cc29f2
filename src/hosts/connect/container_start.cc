#include "hosts/connect/container_start.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "hosts/connect/deploy.h"

namespace phalanx::hosts {
namespace {

using Kind = Container::Kind;

// One word of sh, whatever its bytes: base::shell_quote() uses $'…' for control characters, which only bash and zsh read.
std::string sh_quote(std::string_view text) {
  const std::string quoted = base::shell_quote(text);
  return quoted.starts_with('$') ? "'" + base::replace_all(text, "'", "'\\''") + "'" : quoted;
}

// For every login shell, between single quotes: what one of them could read otherwise (' \ ! and newlines) becomes an octal escape, which
// the printf of sh turns back.
std::string through_any_shell(const std::string& script) {
  std::string out;
  for (unsigned char c : script) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view(" _-./:=,;@+()[]{}<>|&?*~#").find(static_cast<char>(c)) != std::string_view::npos;
    out += plain ? std::string(1, static_cast<char>(c)) : fmt::format("\\0{:03o}", c);
  }
  return "exec sh -c 'exec sh -c \"$(printf %b \"" + out + "\")\"'";
}

// $o: what there is outside, for the agent (machine/outside.h).
constexpr const char* kLookOutside =
    "set -- /dev/nvidia[0-9]*; g=0; if [ -e \"$1\" ]; then g=$#; fi; i=0; if [ -d /dev/infiniband ]; then i=1; fi; "
    "o=\"net=$(readlink /proc/self/ns/net) pid=$(readlink /proc/self/ns/pid) gpus=$g infiniband=$i\"; ";

// $r: the exit code, from here on. 255 may be the engine's own: the lines on stderr tell it from ssh's.
constexpr const char* kLookWhy = "; r=$?; if [ $r != 0 ]; then {}; fi; exit $r";

std::string deploy_inside(const std::string& build, const std::string& tag) {
  return "sh -c " + sh_quote("PHALANX_OUTSIDE=$1; export PHALANX_OUTSIDE; " + deploy_script(build, tag)) + " sh \"$o\"";
}

// present: asks for one thing; list: names what there is.
std::string look_why(const Container& c, const std::string& present, const std::string& list) {
  return fmt::format(
      "if command -v {0} >/dev/null 2>&1; then :; else echo PHALANX-CONTAINER engine; fi >&2; "
      "if s=$({1} 2>/dev/null); then echo PHALANX-CONTAINER state $s; elif l=$({2} 2>/dev/null); then "
      "set -- $l; while [ $# -gt 12 ]; do shift; done; echo PHALANX-CONTAINER absent \"$@\"; "
      "else echo PHALANX-CONTAINER silent; fi >&2",
      c.engine(), present, list);
}

std::string why_of(const Container& c) {
  switch (c.kind) {
    case Kind::kDocker:
    case Kind::kPodman:
      return look_why(c, fmt::format("{} container inspect --format '{{{{.State.Status}}}}' {}", c.engine(), c.what),
                      fmt::format("{} ps --format '{{{{.Names}}}}'", c.engine()));
    case Kind::kDockerImage:
    case Kind::kPodmanImage:
      return look_why(c, fmt::format("{} image inspect --format present {}", c.engine(), c.what),
                      fmt::format("{} images --format '{{{{.Repository}}}}:{{{{.Tag}}}}'", c.engine()));
    case Kind::kApptainer: return look_why(c, "[ -e " + sh_quote(c.what) + " ] && echo present", "true");
    default: return "echo PHALANX-CONTAINER command >&2";
  }
}

std::string arguments_of(const Container& c) {
  std::string out;
  for (const std::string& word : c.arguments) out += sh_quote(word) + " ";
  return out;
}

// What an image is started with. `when`: a test of sh; empty: always.
struct Option {
  std::string words;
  std::string when = {};
};

// An option that the user gives replaces ours: podman would take a second --network for a second network.
bool given(const Container& c, std::string_view option) {
  return std::any_of(c.arguments.begin(), c.arguments.end(), [&](const std::string& word) {
    return word == option || (word.starts_with(option) && word.size() > option.size() && word[option.size()] == '=');
  });
}

std::vector<Option> image_options(const Container& c) {
  if (c.kind == Kind::kApptainer)  // network, processes and /dev/shm are the host's there, unless the administrator has changed that
    return {{"--nv", "[ -e /dev/nvidiactl ]"}, {"--bind " + sh_quote(c.directory), "[ -d " + sh_quote(c.directory) + " ]"}};
  const bool docker = c.kind == Kind::kDockerImage;
  std::vector<Option> out = {{"--rm --interactive --pull never"}};
  if (!given(c, "--network") && !given(c, "--net")) out.push_back({"--network host"});
  for (const char* space : {"--ipc", "--pid"})
    if (!given(c, space)) out.push_back({space + std::string(" host")});
  // Podman sets limits as the user who calls it, the daemon of docker as root.
  out.push_back({docker ? "--ulimit memlock=-1" : "--ulimit memlock=$l"});
  // The root of a rootless container is the user who started it.
  if (!given(c, "--user") && !given(c, "-u")) out.push_back({docker ? "--user \"$(id -u):$(id -g)\"" : "--user 0:0"});
  if (!docker) out.push_back({"--security-opt label=disable"});
  if (docker) out.push_back({"--env HOME=/tmp --env \"USER=$(id -un)\"", "[ \"$(id -u)\" != 0 ]"});
  out.push_back({docker ? "--gpus all" : "--device nvidia.com/gpu=all", "[ -e /dev/nvidiactl ]"});
  out.push_back({"--device /dev/infiniband", "[ -d /dev/infiniband ]"});
  out.push_back({"--mount " + sh_quote(fmt::format("type=bind,source={0},target={0}", c.directory))});
  return out;
}

// The folder of the agent in a container that is made for the run. Apptainer has it where it is.
constexpr const char* kAgentFolder = "/opt/phalanx-agent";

// $1: the folder of the deployed agent on the host.
std::string start_image(const Container& c) {
  std::string out = "h() { p=$1; set --; ";
  if (c.kind == Kind::kPodmanImage)
    out +=
        "if ( ulimit -l unlimited ) 2>/dev/null; then ulimit -l unlimited; fi; "
        "l=$(ulimit -H -l); case $l in unlimited) l=-1 ;; *) l=$((l * 1024)) ;; esac; ";
  for (const Option& option : image_options(c))
    out += !option.when.empty() ? fmt::format("if {}; then set -- \"$@\" {}; fi; ", option.when, option.words)
                                : fmt::format("set -- \"$@\" {}; ", option.words);
  if (c.kind == Kind::kApptainer) {
    out += "PHALANX_OUTSIDE=$o; export PHALANX_OUTSIDE; apptainer exec \"$@\" --bind \"$p\" " + arguments_of(c) + sh_quote(c.what) +
           " \"$p/phalanx\" agent";
  } else {
    out += fmt::format(
        "{} run \"$@\" --env PHALANX_OUTSIDE=\"$o\" --mount type=bind,source=\"$p\",target={},readonly --entrypoint {}/phalanx {}{} agent",
        c.engine(), kAgentFolder, kAgentFolder, arguments_of(c), c.what);
  }
  return out + fmt::format(fmt::runtime(kLookWhy), why_of(c)) + "; }; ";
}

}  // namespace

std::string container_script(const Container& c, const std::string& build, const std::string& tag) {
  if (c.made_for_run()) return kLookOutside + start_image(c) + deploy_script(build, tag, "h \"$(pwd -P)\"");
  const std::string inside = deploy_inside(build, tag);
  const std::string line = c.kind == Kind::kCommand ? "(\n" + base::replace_all(c.what, "{}", inside) + "\n)"
                                                    : fmt::format("{} exec -i {}{} {}", c.engine(), arguments_of(c), c.what, inside);
  const std::string init =
      c.kind == Kind::kCommand
          ? ""
          : fmt::format("o=\"$o init=$({} container inspect --format '{{{{.State.Pid}}}}' {} 2>/dev/null)\"; ", c.engine(), c.what);
  return kLookOutside + init + line + fmt::format(fmt::runtime(kLookWhy), why_of(c));
}

std::string far_command(const Target& target, const std::string& build) {
  if (!target.container) return remote_command(build, fresh_tag());
  return through_any_shell(container_script(target.container, build, fresh_tag()));
}

std::string shown_start(const Container& c) {
  std::string arguments;
  for (const std::string& word : c.arguments) arguments += base::shell_quote(word) + " ";
  if (c.kind == Kind::kCommand) return c.what;
  if (!c.made_for_run()) return fmt::format("{} exec -i {}{} …", c.engine(), arguments, c.what);
  std::string out = std::string(c.engine()) + (c.kind == Kind::kApptainer ? " exec" : " run");
  for (const Option& option : image_options(c)) out += !option.when.empty() ? " [" + option.words + "]" : " " + option.words;
  return base::replace_all(out, "$l", "-1") + " " + arguments + c.what + " …";
}

std::string typed_inside(const Container& c, const std::string& command) {
  if (c.kind != Kind::kDocker && c.kind != Kind::kPodman) return "";
  return fmt::format("{} exec {} sh -c {}", c.engine(), c.what, base::shell_quote(command));
}

}  // namespace phalanx::hosts
