// show: what an environment contains, and where it was.
#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "envcli/output.h"
#include "envcli/verbs.h"
#include "envmove/rehome.h"
#include "envmove/votes.h"
#include "os/files.h"
#include "words/message.h"

namespace phalanx::envcli {
namespace {

using base::Json;
using envmove::Environment;
using words::tr;

std::string source_words(const envmove::Candidate& one, base::Language language) {
  std::vector<std::string> parts;
  for (const auto& [source, count] : one.votes) switch (source) {
      case envmove::Source::kScript: parts.push_back(tr(language, "{} scripts", count)); break;
      case envmove::Source::kPkgConfig: parts.push_back(tr(language, "{} pkg-config files", count)); break;
      case envmove::Source::kSysconfig: parts.push_back(tr(language, "the settings Python was built with")); break;
      case envmove::Source::kActivate: parts.push_back(tr(language, "{} activation scripts", count)); break;
      case envmove::Source::kVenvConfig: parts.push_back("pyvenv.cfg"); break;
    }
  return base::join(parts, ", ");
}

struct Seen {
  std::vector<envmove::Candidate> candidates;
  std::vector<std::string> old_prefixes;
  bool interrupted = false;
};

Json show_json(const Environment& environment, const Seen& seen) {
  Json json = {{"schema", 1},
               {"path", environment.root},
               {"kind", kind_words(environment)},
               {"python", environment.python},
               {"bytes", environment.bytes},
               {"files", environment.files.size()},
               {"fingerprint", envmove::fingerprint(environment)},
               {"interrupted", seen.interrupted},
               {"old_prefixes", Json(seen.old_prefixes)}};
  if (!environment.base.empty()) json["base"] = environment.base;
  json["candidates"] = json["packages"] = json["editables"] = json["unread"] = Json::array();
  for (const envmove::Candidate& one : seen.candidates) json["candidates"].push_back({{"prefix", one.prefix}, {"files", one.total()}});
  for (const envmove::Package& one : environment.packages)
    json["packages"].push_back({{"name", one.name}, {"version", one.version}, {"source", one.conda ? "conda" : "pip"}});
  for (const envmove::Editable& one : environment.editables)
    json["editables"].push_back({{"name", one.name}, {"source", one.source}, {"exists", os::exists(one.source)}});
  for (const std::string& one : environment.unread) json["unread"].push_back(one);
  return json;
}

std::string show_page(const Environment& environment, const Seen& seen, base::Language language) {
  std::string out = environment.root + "\n";
  auto row = [&](const std::string& name, const std::string& value) { out += "  " + base::pad_right(name, 13) + value + "\n"; };
  const size_t conda = static_cast<size_t>(
      std::count_if(environment.packages.begin(), environment.packages.end(), [](const envmove::Package& one) { return one.conda; }));
  row(tr(language, "kind"), kind_words(environment));
  row("Python", environment.python.empty() ? "-" : environment.python);
  if (!environment.base.empty())
    row(tr(language, "base"), environment.base + (os::is_folder(environment.base) ? "" : tr(language, " (missing on this machine)")));
  row(tr(language, "size"), tr(language, "{} in {} files", base::format_bytes(environment.bytes), environment.files.size()));
  row(tr(language, "packages"), tr(language, "{} from conda, {} from pip", conda, environment.packages.size() - conda));
  for (const envmove::Editable& one : environment.editables)
    row(tr(language, "editable"),
        one.name + ": " + one.source + (os::exists(one.source) ? "" : tr(language, " (missing on this machine)")));
  for (const envmove::Candidate& one : seen.candidates)
    row(one.prefix == environment.root ? tr(language, "made for") : tr(language, "former place"),
        one.prefix + " (" + source_words(one, language) + ")");
  row(tr(language, "fingerprint"), envmove::fingerprint(environment).substr(0, 16));
  for (const std::string& one : environment.unread) row(tr(language, "unreadable"), one);
  if (seen.interrupted)
    out += "\n" + tr(language, "A repair was interrupted here: phalanx env rehome {}", base::shell_quote(environment.root)) + "\n";
  else if (!seen.old_prefixes.empty())
    out += "\n" + tr(language, "It was moved: phalanx env rehome {}", base::shell_quote(environment.root)) + "\n";
  return out;
}

}  // namespace

base::Result<int> show(const Request& request, const Environment& environment) {
  Seen seen;
  seen.candidates = envmove::vote(environment);
  seen.old_prefixes = envmove::old_prefixes(environment, seen.candidates);
  TRY_ASSIGN(seen.interrupted, envmove::was_interrupted(environment.root));
  if (request.json) std::fputs((base::to_text(show_json(environment, seen), 2) + "\n").c_str(), stdout);
  else print(stdout, show_page(environment, seen, language_here()));
  return 0;
}

}  // namespace phalanx::envcli
