#include "cli/records/record_facts.h"

#include <map>

#include "base/json_fields.h"
#include "base/try.h"
#include "machine/facts.h"

namespace phalanx::cli {
namespace {

using base::Json;

Json names_of(const std::map<std::string, std::string>& variables) {
  Json names = Json::array();
  for (const auto& [name, value] : variables) names.push_back(name);
  return names;
}

}  // namespace

base::Result<std::string> facts_for_file(const std::string& probed) {
  TRY_ASSIGN(Json read, base::parse_json(probed));
  TRY_ASSIGN(machine::Facts facts, base::from_json<machine::Facts>(read));
  Json environment = names_of(facts.software.environment), variables = Json::array();
  facts.software.environment.clear();
  for (machine::LaunchLine& launch : facts.command.launches) {
    variables.push_back(names_of(launch.variables));
    launch.variables.clear();
  }
  for (machine::CommandFile& file : facts.command.files) file.text.clear();
  Json kept = base::to_json(facts);
  kept["software"].erase("environment");
  kept["software"]["environment_names"] = std::move(environment);
  for (size_t i = 0; i < variables.size(); ++i) {
    Json& launch = kept["command"]["launches"][i];
    launch.erase("variables");
    launch["variable_names"] = std::move(variables[i]);
  }
  for (Json& file : kept["command"]["files"]) file.erase("text");
  return base::to_text(kept);
}

}  // namespace phalanx::cli
