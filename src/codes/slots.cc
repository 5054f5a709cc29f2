#include "codes/slots.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "codes/code.h"

namespace phalanx::codes {
namespace {

constexpr std::string_view kSlots =
    "address,addresses,bus id,checkpoint,commit,config,container,cpus,device,devices,disk,environment,export,file,folder,gpu,gpus,"
    "gpus per host,host,hostfile,hosts,index,interface,interfaces,lid,logs,machine rank,model,mount point,mtu,name,number of hosts,"
    "number of ranks,other host,output,package,path,pid,port,prefix length,processes,rank,script,server,subnet,threads,time,value,"
    "variable,version,watts,wrong server";

bool is_slot_text(char c) { return (c >= 'a' && c <= 'z') || c == ' ' || c == '-'; }

// Calls see(position, end) for each slot until it returns false.
template <typename See>
void each_slot(std::string_view text, See see) {
  for (size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1))
    if (size_t end = slot_end(text, at); end != 0 && !see(at, end)) return;
}

// Whether `at` lies between quotes, where a value that needs quotes of its own does not fit.
bool is_quoted(std::string_view text, size_t at) {
  char quote = 0;
  for (char c : text.substr(0, at)) {
    if (quote == c) quote = 0;
    else if (quote == 0 && (c == '\'' || c == '"')) quote = c;
  }
  return quote != 0;
}

std::string_view name_of(std::string_view text, size_t at, size_t end) { return text.substr(at + 1, end - at - 2); }

}  // namespace

std::span<const std::string_view> slots() {
  static const std::vector<std::string_view> kAll = base::split(kSlots, ',');
  return kAll;
}

size_t slot_end(std::string_view text, size_t at) {
  size_t end = text.find('>', at);
  if (end == std::string_view::npos || end == at + 1) return 0;
  std::string_view inside = text.substr(at + 1, end - at - 1);
  bool slot = std::all_of(inside.begin(), inside.end(), is_slot_text) && inside.front() != ' ' && inside.back() != ' ';
  return slot ? end + 1 : 0;
}

std::string_view unknown_slot(std::string_view command) {
  std::string_view unknown;
  each_slot(command, [&](size_t at, size_t end) {
    if (base::is_listed(name_of(command, at, end), kSlots, ',')) return true;
    unknown = command.substr(at, end - at);
    return false;
  });
  return unknown;
}

std::string fill_command(std::string_view command, const Observed& observed) {
  std::string out;
  size_t done = 0;
  each_slot(command, [&](size_t at, size_t end) {
    auto value = observed.find(name_of(command, at, end));
    if (value == observed.end() || value->second.empty() || value->second.front() == '-') return true;  // "-": would be an option
    std::string word = base::shell_quote(value->second);
    if (word != value->second && is_quoted(command, at)) return true;
    out += std::string(command.substr(done, at - done)) + word;
    done = end;
    return true;
  });
  return out + std::string(command.substr(done));
}

std::string fill_page(std::string_view text, const Observed& observed) {
  std::vector<std::string> lines;
  for (std::string_view line : base::split(text, '\n'))
    lines.push_back(line.starts_with("$ ") ? fill_command(line, observed) : std::string(line));
  return base::join(lines, "\n");
}

std::string filled_command(const Code& code, const Observed& observed) {
  for (std::string_view line : base::split(code.fix.english, '\n')) {
    if (!line.starts_with("$ ")) continue;
    std::string filled = fill_command(line.substr(2), observed);
    bool complete = true;
    each_slot(filled, [&](size_t, size_t) { return complete = false; });
    if (complete && filled != line.substr(2) && filled.find("…") == std::string::npos) return filled;
  }
  return "";
}

}  // namespace phalanx::codes
