#include "diagnosis/hang/ras.h"

#include "base/text.h"
#include "diagnosis/hang/ras_forms.h"

namespace phalanx::diagnosis {
namespace {

constexpr size_t kMostBytes = 32 << 20;

}  // namespace

bool looks_like_ras(std::string_view beginning) {
  std::string_view head = beginning.substr(0, 1 << 16);
  bool json = base::trim(head).starts_with("{") && head.find("\"nccl_version\"") != std::string_view::npos;
  bool text = head.find("Job summary\n===") != std::string_view::npos || head.find("Communicators...") != std::string_view::npos;
  return json || text;
}

base::Result<RasReport> read_ras(std::string_view text) {
  if (text.size() > kMostBytes) return base::fail(base::ErrorKind::kConfig, "the NCCL RAS report is larger than 32 MiB");
  if (!looks_like_ras(text)) return base::fail(base::ErrorKind::kConfig, "not an NCCL RAS report");
  if (!base::trim(text).starts_with("{")) return read_ras_text(text);
  base::Result<base::Json> json = base::parse_json(text, kMostBytes);
  if (!json.ok()) return base::Error(json.error()).within("reading an NCCL RAS report");
  if (!json->is_object()) return base::fail(base::ErrorKind::kConfig, "not an NCCL RAS report");
  return read_ras_json(*json);
}

}  // namespace phalanx::diagnosis
