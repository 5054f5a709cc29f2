#include "frontdoor/frontdoor.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "frontdoor/door.h"

namespace phalanx::frontdoor {
namespace {

using words::tr;

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_python(std::string_view word) {
  word = base_name(word);
  if (!word.starts_with("python")) return false;
  return word.substr(6).find_first_not_of("0123456789.") == std::string_view::npos;
}

// Where "-m" stands among Python's own options; 0: there is none before the script.
size_t module_at(std::span<const std::string> words) {
  for (size_t i = 1; i + 1 < words.size() && words[i].starts_with("-"); ++i) {
    if (words[i] == "-m") return i;
    if (words[i] == "-c") return 0;
    if (words[i] == "-W" || words[i] == "-X") ++i;
  }
  return 0;
}

std::optional<Peer> peer_of_module(std::string_view module) {
  if (module == "torch.distributed.run" || module == "torch.distributed.elastic.run") return Peer::kTorchrun;
  if (module == "torch.distributed.launch") return Peer::kTorchLaunch;
  if (module == "accelerate.commands.launch" || module == "accelerate.commands.accelerate_cli" || module == "accelerate")
    return Peer::kAccelerate;
  if (module == "deepspeed" || module == "deepspeed.launcher.runner") return Peer::kDeepSpeed;
  if (module == "llamafactory.cli") return Peer::kLlamaFactory;
  return std::nullopt;
}

bool is_assignment(std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos || (word[0] >= '0' && word[0] <= '9')) return false;
  return std::all_of(word.begin(), word.begin() + static_cast<ptrdiff_t>(equals),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; });
}

}  // namespace

std::optional<Peer> peer_of(std::span<const std::string> words) {
  if (words.empty()) return std::nullopt;
  const std::string_view name = base_name(words[0]);
  if (name == "torchrun") return Peer::kTorchrun;
  if (name == "accelerate" || name == "accelerate-launch") return Peer::kAccelerate;
  if (name == "deepspeed" || name == "ds") return Peer::kDeepSpeed;
  if (name == "llamafactory-cli" || name == "lmf") return Peer::kLlamaFactory;
  if (!is_python(words[0])) return std::nullopt;
  const size_t at = module_at(words);
  std::optional<Peer> peer = at ? peer_of_module(words[at + 1]) : std::nullopt;
  return peer ? peer : Peer::kPython;
}

void take_prefix(Line& line) {
  size_t count = 0;
  while (count < line.words.size() && is_assignment(line.words[count])) ++count;
  for (size_t i = 0; i < count; ++i) {
    const size_t equals = line.words[i].find('=');
    line.prefix.emplace_back(line.words[i].substr(0, equals), line.words[i].substr(equals + 1));
  }
  line.words.erase(line.words.begin(), line.words.begin() + static_cast<ptrdiff_t>(count));
}

base::Result<Translation> translate(const Line& typed, const Surroundings& surroundings) {
  Line line = typed;
  const std::optional<Peer> peer = peer_of(line.words);
  if (peer == Peer::kPython) add_from_pod(line, surroundings);
  if (!peer)
    return base::fail(base::ErrorKind::kUsage, fmt::format("{} is not a launcher that Phalanx can translate",
                                                           line.words.empty() ? "an empty command" : base::quote(line.words[0])))
        .with_hint("torchrun, python -m torch.distributed.launch, accelerate launch, deepspeed, llamafactory-cli train, and python");
  for (const std::string& word : line.words)
    if (word.find('\0') != std::string::npos) return base::fail(base::ErrorKind::kUsage, "the command holds a zero byte");
  Door door{line, surroundings, {}};
  std::span<const std::string> words(line.words);
  std::string launcher = words[0];
  const bool by_python = is_python(words[0]);
  const size_t own = by_python && *peer != Peer::kPython ? module_at(words) + 2 : 1;
  if (by_python) door.out.peer = *peer == Peer::kPython ? "python" : "python -m " + words[own - 1];
  else door.out.peer = std::string(base_name(words[0]));
  TRY(answer_variables(door, *peer));
  base::Status done = base::ok();
  switch (*peer) {
    case Peer::kTorchrun:
    case Peer::kTorchLaunch: done = torchrun_door(door, *peer, launcher, words.subspan(own)); break;
    case Peer::kAccelerate:
      // accelerate-launch and the module are the verb itself.
      done = accelerate_door(door, launcher, words.subspan(own));
      break;
    case Peer::kDeepSpeed: done = deepspeed_door(door, launcher, words.subspan(own)); break;
    case Peer::kLlamaFactory: done = llamafactory_door(door, launcher, words.subspan(own)); break;
    case Peer::kPython: done = python_door(door, words); break;
  }
  TRY(std::move(done));
  // An interpreter that was typed is the interpreter of the ranks.
  if (by_python && *peer != Peer::kPython && !door.out.argv.empty() && door.out.argv[0] == door.python(launcher))
    door.out.argv[0] = words[0];
  finish(door, *peer);
  return std::move(door.out);
}

}  // namespace phalanx::frontdoor
