// verify: what is wrong with an environment.
#include <functional>

#include "base/json.h"
#include "base/try.h"
#include "codes/code.h"
#include "envcli/output.h"
#include "envcli/verbs.h"
#include "envmove/verify.h"
#include "words/message.h"

namespace phalanx::envcli {
namespace {

using base::ErrorKind;
using base::Json;
using envmove::Environment;
using words::Text;
using words::tr;

Json verify_json(const Environment& environment, const std::vector<envmove::Flaw>& flaws) {
  Json json = {{"schema", 1}, {"path", environment.root}, {"fingerprint", envmove::fingerprint(environment)}, {"findings", Json::array()}};
  for (const envmove::Flaw& flaw : flaws)
    json["findings"].push_back(
        {{"code", flaw.code}, {"severity", flaw.fatal ? "error" : "warning"}, {"path", flaw.path}, {"detail", flaw.detail}});
  return json;
}

// Every code once, with the first of what it was seen on.
std::string verify_page(const std::vector<envmove::Flaw>& flaws, base::Language language) {
  std::string out;
  for (size_t i = 0; i < flaws.size();) {
    size_t end = i;
    while (end < flaws.size() && flaws[end].code == flaws[i].code) ++end;
    out += std::string((flaws[i].fatal ? Text{"error"} : Text{"warning"}).in(language)) + "  " + std::string(flaws[i].code) + ": " +
           std::string(codes::get(flaws[i].code).title.in(language)) + "\n";
    std::vector<std::string> seen;
    for (size_t k = i; k < end; ++k) seen.push_back(flaws[k].path + (flaws[k].detail.empty() ? "" : ": " + flaws[k].detail));
    out += list_of(seen, false, "--json", language);
    i = end;
  }
  return out;
}

}  // namespace

base::Result<int> verify(const Request& request, const Environment& environment) {
  const base::Language language = language_here();
  std::vector<envmove::Flaw> flaws;
  {
    ProgressLine line(tr(language, "reading"), language);
    TRY_ASSIGN(flaws, envmove::verify(environment, {.hashes = request.hashes}, std::ref(line)));
  }
  const bool fatal = !flaws.empty() && flaws.front().fatal;
  if (request.json) {
    std::fputs((base::to_text(verify_json(environment, flaws), 2) + "\n").c_str(), stdout);
  } else if (flaws.empty()) {
    print(stdout,
          tr(language, "{}: nothing is wrong; fingerprint {}", environment.root, envmove::fingerprint(environment).substr(0, 16)) + "\n");
  } else {
    print(stdout, verify_page(flaws, language));
    print(stderr, "\nphalanx explain " + std::string(flaws.front().code) + "\n");
  }
  return fatal ? base::exit_code(ErrorKind::kUnfit) : 0;
}

}  // namespace phalanx::envcli
