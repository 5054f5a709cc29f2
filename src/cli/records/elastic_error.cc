#include "cli/records/elastic_error.h"

#include "base/json.h"

namespace phalanx::cli {

using base::Json;

std::string elastic_error(const std::string& from_rank, const std::string& message, int exit_code, long long unix_seconds) {
  base::Result<Json> left = base::parse_json(from_rank);
  Json json = left.ok() && left->is_object() && left->contains("message") ? std::move(*left) : Json::object();
  if (json.empty()) json["message"] = {{"message", message}, {"extraInfo", {{"timestamp", std::to_string(unix_seconds)}}}};
  if (json["message"].is_object()) json["message"]["errorCode"] = exit_code;
  return base::to_text(json) + "\n";
}

}  // namespace phalanx::cli
