// docs/formats/check-json.md
#include "base/json_fields.h"
#include "base/text.h"
#include "doctor/commands.h"
#include "view/check/view.h"
#include "view/explain_view.h"

namespace phalanx::view {
namespace {

constexpr int kSchema = 1;

base::Json host_json(const doctor::HostView& host) {
  base::Json json = {{"name", host.name}, {"probed", host.probed}};
  if (!host.probed) {
    json["error"] = host.error;
    return json;
  }
  json["address"] = host.address;
  json["interface"] = host.interface;
  json["ranks"] = host.ranks;
  if (host.clock_offset_ns) {
    json["clock_offset_ns"] = *host.clock_offset_ns;
    json["clock_error_ns"] = host.clock_error_ns;
  }
  json["facts"] = base::to_json(host.facts);
  // Whole files do not belong in a report, and may hold what nobody else should read; their hashes are there.
  for (base::Json& file : json["facts"]["command"]["files"]) file.erase("text");
  return json;
}

// What the command destroys; empty if nothing.
std::string cost_of(const std::string& fix) {
  std::string cost;
  for (std::string_view line : base::split_lines(fix))
    if (auto effect = doctor::effect_of(line); effect && effect->effect == doctor::Effect::kDestroys) cost = effect->cost.english;
  return cost;
}

base::Json finding_json(const doctor::Situation& situation, const doctor::Finding& finding) {
  base::Json hosts = base::Json::array();
  for (size_t h : finding.hosts) hosts.push_back(situation.hosts[h].name);
  return {{"code", finding.row->code}, {"severity", severity_key(finding.row->severity)}, {"accepted", finding.accepted},
          {"hosts", std::move(hosts)}, {"title", finding.row->page().title.english},      {"evidence", finding.evidence.english},
          {"fix", finding.fix},        {"advice", finding.row->page().fix.english},       {"fix_cost", cost_of(finding.fix)},
          {"where", finding.where}};
}

base::Json choices_json(const doctor::Situation& situation, const job::Choices& choices) {
  base::Json hosts = base::Json::array();
  for (size_t h = 0; h < choices.hosts.size() && h < situation.hosts.size(); ++h) {
    const job::HostChoice& choice = choices.hosts[h];
    base::Json settings = base::Json::array();
    for (const job::Setting& setting : choice.settings)
      settings.push_back({{"name", setting.name}, {"value", setting.value}, {"why", setting.why.english}});
    hosts.push_back({{"name", situation.hosts[h].name},
                     {"gpus", choice.gpus},
                     {"gpus_why", choice.gpus_why.english},
                     {"interface", choice.interface},
                     {"address", choice.address},
                     {"address_why", choice.address_why.english},
                     {"settings", std::move(settings)},
                     {"rank_cpus", choice.rank_cpus},
                     {"cpus_why", choice.cpus_why.english}});
  }
  base::Json remarks = base::Json::array();
  for (const doctor::Words& remark : choices.remarks) remarks.push_back(remark.english);
  return {{"hosts", std::move(hosts)}, {"remarks", std::move(remarks)}};
}

}  // namespace

base::Json check_json(const doctor::Situation& situation, const doctor::Examination& examination, const job::Choices* choices) {
  base::Json json = {{"schema", kSchema}, {"command", situation.job.argv}};
  json["errors"] = examination.errors;
  json["warnings"] = examination.warnings;
  json["notes"] = examination.notes;
  json["accepted"] = examination.accepted;
  json["unreachable"] = base::Json::array();
  for (const doctor::HostView& host : situation.hosts)
    if (!host.probed) json["unreachable"].push_back(host.name);
  json["findings"] = base::Json::array();
  for (const doctor::Finding& finding : examination.findings) json["findings"].push_back(finding_json(situation, finding));
  json["hosts"] = base::Json::array();
  for (const doctor::HostView& host : situation.hosts) json["hosts"].push_back(host_json(host));
  json["mesh"] = base::to_json(situation.mesh);
  if (choices) json["choices"] = choices_json(situation, *choices);
  return json;
}

}  // namespace phalanx::view
