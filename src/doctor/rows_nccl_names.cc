// Names that NCCL does not know, and values that it reads otherwise than they look.
#include <fmt/format.h>

#include "base/text.h"
#include "doctor/nccl_variables.h"
#include "doctor/rows_nccl_parts.h"
#include "doctor/settings.h"

namespace doctor {
namespace {

template <typename Look>  // look(host, setting)
void each_setting(const Situation& s, Look look) {
  for (size_t host : probed(s))
    for (const Setting& one : settings(s, host, {"NC", "NLCC"})) look(host, one);
}

void check_misspelled(const Situation& s, Findings& findings) {
  each_setting(s, [&](size_t host, const Setting& one) {
    std::string meant = meant_name(one.name);
    if (meant.empty() || find_folklore(one.name) || one.name.find(' ') != std::string::npos) return;
    findings.on(host,
                {fmt::format("{}={} is not a name NCCL knows; {} is", one.name, one.value, meant),
                 fmt::format("NCCL 不认识 {}={}，正确的名字是 {}", one.name, one.value, meant)},
                fmt::format("export {}={}", meant, base::shell_quote(one.value)));
  });
}

void check_unknown(const Situation& s, Findings& findings) {
  each_setting(s, [&](size_t host, const Setting& one) {
    if (const Folklore* folklore = find_folklore(one.name)) {
      findings.on(host,
                  {fmt::format("{}={} does nothing; {}", one.name, one.value, folklore->english),
                   fmt::format("{}={} 不起任何作用；{}", one.name, one.value, folklore->chinese)},
                  away(s, host, one));
      return;
    }
    if (!one.name.starts_with("NCCL_") || is_known_name(one.name) || !meant_name(one.name).empty()) return;
    findings.on(host,
                {fmt::format("{}={}: no release of NCCL from 2.3 to 2.30 has this name", one.name, one.value),
                 fmt::format("{}={}：NCCL 2.3 至 2.30 都没有这个变量", one.name, one.value)},
                away(s, host, one));
  });
}

void check_renamed(const Situation& s, Findings& findings) {
  each_setting(s, [&](size_t host, const Setting& one) {
    std::string_view now = torch_name_of(one.name);
    if (now.empty()) return;
    std::string torch = package(s, host, "torch");
    if (!torch.empty() && (torch.starts_with("1.") || torch.starts_with("2.0") || torch.starts_with("2.1"))) return;  // its name then
    findings.on(host,
                {fmt::format("{}={}: torch calls it {} since 2.2", one.name, one.value, now),
                 fmt::format("{}={}：torch 2.2 起改名为 {}", one.name, one.value, now)},
                fmt::format("export {}={}", now, base::shell_quote(one.value)));
  });
}

void check_removed(const Situation& s, Findings& findings) {
  each_setting(s, [&](size_t host, const Setting& one) {
    const NcclVariable* known = find_nccl_variable(one.name);
    int have = nccl_minor(nccl_version(s, host));
    if (!known || known->removed == 0 || (have >= 0 ? have < known->removed : known->removed > 12)) return;
    std::string instead = known->instead.empty() ? "" : fmt::format("; today: {}", known->instead);
    std::string instead_zh = known->instead.empty() ? "" : fmt::format("，现用 {}", known->instead);
    findings.on(host,
                {fmt::format("{}={} was removed in NCCL 2.{}{}", one.name, one.value, known->removed, instead),
                 fmt::format("{}={} 已在 NCCL 2.{} 中移除{}", one.name, one.value, known->removed, instead_zh)},
                away(s, host, one));
  });
}

void check_too_new(const Situation& s, Findings& findings) {
  each_setting(s, [&](size_t host, const Setting& one) {
    const NcclVariable* known = find_nccl_variable(one.name);
    int have = nccl_minor(nccl_version(s, host));
    if (!known || have < 0 || known->since <= have) return;
    findings.on(host,
                {fmt::format("{}={} exists since NCCL 2.{}; here is {}", one.name, one.value, known->since, nccl_version(s, host)),
                 fmt::format("{}={} 自 NCCL 2.{} 才有，这里是 {}", one.name, one.value, known->since, nccl_version(s, host))},
                away(s, host, one));
  });
}

void check_not_a_number(const Situation& s, Findings& findings) {
  each_setting(s, [&](size_t host, const Setting& one) {
    const NcclVariable* known = find_nccl_variable(one.name);
    if (!known || known->kind != VariableKind::kNumber) return;
    std::optional<ReadNumber> read = read_as_nccl(one.value);
    if (!read || (read->whole && !read->octal)) return;
    std::string lower = base::to_lower(base::trim(one.value));
    bool yes = lower == "true" || lower == "on" || lower == "yes";
    std::string meant = yes           ? "1"
                        : read->octal ? std::string(base::trim(one.value)).substr(one.value.find_first_not_of(" 0"))
                                      : std::to_string(read->value);
    findings.on(host,
                {fmt::format("NCCL reads {}={} as {}", one.name, one.value, read->value),
                 fmt::format("NCCL 会把 {}={} 读成 {}", one.name, one.value, read->value)},
                fmt::format("export {}={}", one.name, meant));
  });
}

void check_range(const Situation& s, Findings& findings) {
  each_setting(s, [&](size_t host, const Setting& one) {
    const NcclVariable* known = find_nccl_variable(one.name);
    std::optional<ReadNumber> read = read_as_nccl(one.value);
    if (!known || !read || !read->whole || (known->min == 0 && known->max == 0)) return;
    if (read->value >= known->min && read->value <= known->max) return;
    findings.on(host,
                {fmt::format("{}={}; it goes from {} to {}", one.name, one.value, known->min, known->max),
                 fmt::format("{}={}，有效范围是 {} 到 {}", one.name, one.value, known->min, known->max)},
                away(s, host, one));
  });
}

void check_word(const Situation& s, Findings& findings) {
  each_setting(s, [&](size_t host, const Setting& one) {
    std::string word = unknown_word(one.name, one.value);
    if (word.empty()) return;
    findings.on(host,
                {fmt::format("{}={}: NCCL does not know '{}'", one.name, one.value, word),
                 fmt::format("{}={}：NCCL 不认识“{}”", one.name, one.value, word)},
                away(s, host, one));
  });
}

const Row kNcclNameRows[] = {
    {"NCCL-MISSPELLED",
     Severity::kWarning,
     Group::kNccl,
     {"a variable's name is nearly one of NCCL's", "变量名与 NCCL 的某个变量只差一两个字母"},
     {"Is every NCCL_* name one that NCCL reads?", "每个 NCCL_* 变量名都是 NCCL 会读取的吗？"},
     {"NCCL ignores names it does not know, without a word, and keeps its default: the setting you rely on is not there.",
      "NCCL 遇到不认识的变量名会静默忽略并使用默认值：你以为生效的设置其实不存在。"},
     {"Correct the name.\n$ env | grep -E '^NC'", "改正变量名。\n$ env | grep -E '^NC'"},
     "NCCL src/misc/param.cc",
     check_misspelled},
    {"NCCL-UNKNOWN-VARIABLE",
     Severity::kNote,
     Group::kNccl,
     {"a variable that no NCCL reads", "没有任何 NCCL 版本读取的变量"},
     {"Is every NCCL_* name one that NCCL reads?", "每个 NCCL_* 变量名都是 NCCL 会读取的吗？"},
     {"Names copied from posts, such as NCCL_TIMEOUT or NCCL_MIN_CHANNELS, never existed. They change nothing, and hide that nothing was "
      "changed.",
      "从帖子里抄来的名字（如 NCCL_TIMEOUT、NCCL_MIN_CHANNELS）从未存在过。它们不起作用，还让人误以为已经改过。"},
     {"Remove it, or use the name that is meant.\n$ unset NCCL_TIMEOUT", "删除它，或换成真正的名字。\n$ unset NCCL_TIMEOUT"},
     "NCCL src/, tags 2.3 to 2.30",
     check_unknown},
    {"NCCL-RENAMED",
     Severity::kNote,
     Group::kNccl,
     {"a variable has a new name", "变量已改名"},
     {"Are torch's variables called by the name this torch uses?", "torch 的变量用的是当前版本的名字吗？"},
     {"torch warns: \"Environment variable NCCL_BLOCKING_WAIT is deprecated; use TORCH_NCCL_BLOCKING_WAIT instead\". The old name still "
      "works today.",
      "torch 会提示 “Environment variable NCCL_BLOCKING_WAIT is deprecated; use TORCH_NCCL_BLOCKING_WAIT instead”。旧名目前仍可用。"},
     {"Use the new name.\n$ export TORCH_NCCL_ASYNC_ERROR_HANDLING=1", "改用新名。\n$ export TORCH_NCCL_ASYNC_ERROR_HANDLING=1"},
     "torch ProcessGroupNCCL.hpp",
     check_renamed},
    {"NCCL-REMOVED",
     Severity::kWarning,
     Group::kNccl,
     {"a variable that this NCCL no longer reads", "当前 NCCL 已不再读取的变量"},
     {"Does the NCCL that will be loaded still know each variable?", "将要加载的 NCCL 还认识这些变量吗？"},
     {"Advice for old releases (NCCL_IB_CUDA_SUPPORT, NCCL_TREE_THRESHOLD, NCCL_LL_THRESHOLD) has no effect on new ones, and no message "
      "says so.",
      "针对旧版本的建议（NCCL_IB_CUDA_SUPPORT、NCCL_TREE_THRESHOLD、NCCL_LL_THRESHOLD）在新版本上毫无作用，也没有任何提示。"},
     {"Remove it.\n$ unset NCCL_IB_CUDA_SUPPORT", "删除它。\n$ unset NCCL_IB_CUDA_SUPPORT"},
     "NCCL user guide env.rst; source tags",
     check_removed},
    {"NCCL-TOO-NEW",
     Severity::kNote,
     Group::kNccl,
     {"a variable that this NCCL does not know yet", "当前 NCCL 还不支持的变量"},
     {"Is the NCCL that will be loaded new enough for each variable?", "将要加载的 NCCL 足够新，能识别这些变量吗？"},
     {"An older NCCL ignores the name silently. The setting works only after torch (and its NCCL) is upgraded.",
      "较旧的 NCCL 会静默忽略该变量；升级 torch（及其自带的 NCCL）后才会生效。"},
     {"Remove it, or upgrade.\n$ python -c 'import torch; print(torch.cuda.nccl.version())'",
      "删除它，或升级。\n$ python -c 'import torch; print(torch.cuda.nccl.version())'"},
     "NCCL source tags",
     check_too_new},
    {"NCCL-NOT-A-NUMBER",
     Severity::kWarning,
     Group::kNccl,
     {"NCCL reads another number than is written", "NCCL 读到的数值与写的不同"},
     {"Is every number of an NCCL variable a plain decimal number?", "NCCL 数值型变量都是普通的十进制数吗？"},
     {"NCCL reads numbers with strtoll(value, NULL, 0): NCCL_IB_DISABLE=true is 0 (InfiniBand stays on; the log says \"set by environment "
      "to 0.\"), 010 is 8, 20ms is 20.",
      "NCCL 用 strtoll(value, NULL, 0) 解析数值：NCCL_IB_DISABLE=true 等于 0（InfiniBand 仍开启，日志写 “set by environment to 0.”），010 "
      "等于 8，20ms 等于 20。"},
     {"Write a decimal number: 1 for on, 0 for off.\n$ export NCCL_IB_DISABLE=1",
      "写十进制数：1 表示开，0 表示关。\n$ export NCCL_IB_DISABLE=1"},
     "NCCL src/misc/param.cc, ncclLoadParam",
     check_not_a_number},
    {"NCCL-RANGE",
     Severity::kWarning,
     Group::kNccl,
     {"a value outside the range of its variable", "数值超出变量的有效范围"},
     {"Does every NCCL number lie in its documented range?", "NCCL 的数值都在文档规定的范围内吗？"},
     {"NCCL_IB_RETRY_CNT is a field of three bits: 13, as often copied, is not valid (0 to 7). To wait longer raise NCCL_IB_TIMEOUT: 20 "
      "with 7 retries is about 30 s, 22 about 2 minutes, 23 about 4. A timeout of 0 or of 32 and more waits for ever.",
      "NCCL_IB_RETRY_CNT 只有 3 位，常被抄来的 13 无效（应为 0 到 7）。想等更久请调大 NCCL_IB_TIMEOUT：重试 7 次时，20 约 30 秒，22 约 2 "
      "分钟，23 约 4 分钟。超时设为 0 或 ≥32 则无限等待。"},
     {"Use a value in the range, or remove it.\n$ export NCCL_IB_RETRY_CNT=7 NCCL_IB_TIMEOUT=22",
      "改为范围内的值，或删除。\n$ export NCCL_IB_RETRY_CNT=7 NCCL_IB_TIMEOUT=22"},
     "NCCL user guide env.rst; net_socket.cc",
     check_range},
    {"NCCL-WORD",
     Severity::kWarning,
     Group::kNccl,
     {"a word that NCCL does not know in a variable's value", "变量值里有 NCCL 不认识的词"},
     {"Are the words in NCCL_DEBUG, NCCL_ALGO, NCCL_PROTO and the levels ones that NCCL knows?",
      "NCCL_DEBUG、NCCL_ALGO、NCCL_PROTO 等的取值是 NCCL 认识的吗？"},
     {"NCCL_DEBUG=DEBUG prints nothing at all. Since 2.24 an unknown NCCL_ALGO or NCCL_PROTO ends the start: \"Unrecognized element "
      "token\".",
      "NCCL_DEBUG=DEBUG 什么也不会打印。2.24 起，NCCL_ALGO 或 NCCL_PROTO 里有未知词会直接启动失败：“Unrecognized element token”。"},
     {"Use a known word: NCCL_DEBUG is VERSION, WARN, INFO or TRACE.\n$ export NCCL_DEBUG=INFO",
      "使用合法取值：NCCL_DEBUG 可为 VERSION、WARN、INFO、TRACE。\n$ export NCCL_DEBUG=INFO"},
     "NCCL src/debug.cc, src/graph/tuning.cc",
     check_word},
};

}  // namespace

std::span<const Row> nccl_name_rows() { return kNcclNameRows; }

}  // namespace doctor
