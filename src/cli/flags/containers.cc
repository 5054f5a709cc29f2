#include "cli/flags/containers.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/name_ranges.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "cli/flags/container_wish.h"
#include "frontdoor/shell_line.h"

namespace phalanx::cli {
namespace {

using hosts::Container;

using base::usage;

base::Result<std::vector<std::string>> words_of(const std::string& text) {
  if (text.empty()) return std::vector<std::string>();
  TRY_ASSIGN(std::vector<frontdoor::ShellCommand> commands, frontdoor::parse_shell(text));
  if (commands.size() != 1 || !commands[0].assignments.empty() || !commands[0].dropped.empty())
    return usage(fmt::format("--container-args: {} is not a list of words", base::quote(text)),
                 "put characters like ; | < > & into quotes");
  if (!commands[0].unknown.empty())
    return usage(fmt::format("--container-args: the variable {} has no value there", commands[0].unknown[0]), "write its value");
  return std::move(commands[0].words);
}

base::Status check(const Container& container, const RunOptions& options) {
  if (!container.made_for_run()) return base::ok();
  if (options.sync)
    return usage(fmt::format("--sync and {} cannot be combined: the copy would be lost with the container", hosts::to_text(container)),
                 "omit --sync: the working directory of the host is mounted");
  if (container.directory.find_first_of(",\"\n") != std::string::npos)
    return usage(fmt::format("the working directory {} cannot be mounted into a container", base::quote(container.directory)),
                 "use a path without commas, quotes and line ends: -C DIRECTORY");
  return base::ok();
}

// Every host that the wish names is one of the job's.
base::Status check_hosts(const ContainerWish& wish, const job::Job& job) {
  std::vector<std::string> names;
  for (const std::vector<job::HostRequest>* list : {&job.hosts, &job.spares})
    for (const job::HostRequest& host : *list) names.push_back(host.target.name);
  for (const std::string& name : wish.hosts)
    if (std::find(names.begin(), names.end(), name) == names.end())
      return usage(fmt::format("--container: {} is not one of the hosts", base::quote(name)),
                   fmt::format("the hosts are {}", base::join(base::fold_names(names), ",")));
  return base::ok();
}

}  // namespace

base::Status put_in_containers(const RunOptions& options, job::Job& job) {
  TRY_ASSIGN(const std::vector<std::string> arguments, words_of(options.container_args));
  if (options.containers.empty())
    return arguments.empty() ? base::ok() : base::Status(usage("--container-args needs --container", "omit it, or name the container"));
  std::vector<ContainerWish> wishes;
  for (const std::string& text : options.containers) {
    TRY_ASSIGN(ContainerWish wish, parse_container_wish(text));
    TRY(check_hosts(wish, job));
    wish.container.arguments = arguments;
    if (wish.container.made_for_run()) wish.container.directory = job.directory;
    TRY(check(wish.container, options));
    wishes.push_back(std::move(wish));
  }
  for (std::vector<job::HostRequest>* list : {&job.hosts, &job.spares})
    for (job::HostRequest& host : *list) {
      const ContainerWish* own = nullptr;
      const ContainerWish* general = nullptr;
      for (const ContainerWish& wish : wishes) {
        const bool named = std::find(wish.hosts.begin(), wish.hosts.end(), host.target.name) != wish.hosts.end();
        if (!named && !wish.hosts.empty()) continue;
        const ContainerWish*& place = named ? own : general;
        if (place)
          return usage(fmt::format("--container: two containers for {}: {} and {}", host.target.name, hosts::to_text(place->container),
                                   hosts::to_text(wish.container)),
                       "keep one of them");
        place = &wish;
      }
      if (own || general) host.target.container = (own ? own : general)->container;
    }
  return base::ok();
}

}  // namespace phalanx::cli
