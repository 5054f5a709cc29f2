#!/usr/bin/env bash
# A conda environment to hosts: `phalanx env push`, with everything rewritten for another path and verified, beside tar, scp and rsync over
# ssh, and tar with zstd followed by the repair that the others would need too. Taking turns on one test cluster, to one host and to all;
# then again after ten files changed. All of this twice: with links that have no limit, where only the cores limit, which all hosts, sshds
# and the launcher share; and with every link, the launcher's too, limited to 1 Gbit/s. Needs root.
# Usage: bench/env.sh [BUILD_FOLDER] [--ratios]
# HOSTS=4, FILES=6000, BYTES=150000000, RATES="none 1gbit", ROUNDS=3 and WAYS="tar rsync scp zstd" in the environment change the plan.
# FILES=60000 BYTES=4000000000 is the size of a large environment with torch. --ratios: only "name value" lines of links without a limit,
# for tests/guards.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
only=
[[ ${!#} != --ratios ]] || { only=ratios RATES=none; set -- "${@:1:$#-1}"; }
build=$(readlink -f "${1:-build/train}")
phalanx=$build/phalanx testbed=$build/tests/cluster/testbed
for program in "$phalanx" "$phalanx-env" "$testbed"; do
  [[ -x $program ]] || { printf 'error: %s is missing\nhint: ./x build\n' "$program" >&2; exit 2; }
done
hosts=${HOSTS:-4} files=${FILES:-6000} bytes=${BYTES:-150000000} rounds=${ROUNDS:-3}
rates=${RATES:-none 1gbit} ways=${WAYS:-tar rsync scp zstd}
for program in $ways; do  # each is called as its program
  command -v "$program" > /dev/null || { printf 'error: %s is missing\nhint: apt-get install %s\n' "$program" "$program" >&2; exit 77; }
done
((EUID == 0)) || { echo "bench env: skipped, the test cluster needs root" >&2; exit 0; }

results=$(mktemp -d)
export TESTBED=bench-env-$$
trap '"$testbed" down; rm -rf "$results"' EXIT
"$testbed" up "$hosts" --detach > "$results/up" || { code=$?; exit $((code == 3 ? 77 : code)); }  # 3: no cluster can be made here
on() { local host=$1; shift; "$testbed" exec "$host" "$@"; }

# Homes are in memory, of 1 GiB unless told otherwise.
each_kib=$((bytes / 1024 + files * 8 + (256 << 10)))
free_kib=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
((each_kib * (hosts + 1) < free_kib)) ||
  { echo "error: $((each_kib * (hosts + 1) >> 20)) GiB of memory are needed, $((free_kib >> 20)) are free" >&2
    echo "hint: fewer HOSTS or BYTES" >&2; exit 77; }
for host in ctl $(seq -f 'h%.0f' "$hosts"); do
  ((each_kib < 1 << 20)) || on "$host" mount -o "remount,size=${each_kib}k" /root
done

# A conda environment in the documented layout, and site-packages of real bytes: pieces of this machine's libraries and Python sources, all
# different, 2 % of the files with 60 % of the bytes.
on ctl env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$PWD/tests/env" python3 - "$files" "$bytes" << 'EOF'
import glob, os, sys
from conda_env import *
files, size = int(sys.argv[1]), int(sys.argv[2])
root = '/root/envs/llm'
Conda(root, root, compile_program('/root'))
def pool(pattern, most):
    out = b''
    for path in sorted(glob.glob(pattern, recursive=True)):
        if os.path.isfile(path) and len(out) < most: out += open(path, 'rb').read()
    return out
libraries, sources = pool('/usr/lib/x86_64-linux-gnu/*.so*', 64 << 20), pool('/usr/lib/python3*/**/*.py', 16 << 20)
large = max(1, files // 50)
for i in range(files):
    folder = '%s/%s/package%d' % (root, SITE, i % 200)
    os.makedirs(folder, exist_ok=True)
    length, bytes_ = (int(size * .6 / large), libraries) if i < large else (int(size * .4 / (files - large)), sources)
    start = i * 7919 % max(1, len(bytes_) - length)
    with open('%s/%s%d' % (folder, 'lib' if i < large else 'part', i), 'wb') as f:
        f.write(b'%d\n' % i)
        left = length
        while left > 0:  # a slice of what is needed, no more: copies of the whole pool would take longer than the benchmark
            left -= f.write(bytes_[start:start + left])
            start = 0
EOF
on ctl find /root/envs -exec touch -h -d '1 hour ago' {} +

there=/root/data/environments/llm
names=h1; for ((h = 2; h <= hosts; ++h)); do names+=,h$h; done
everywhere() { for ((h = 1; h <= hosts; ++h)); do on "h$h" sh -c "$1"; done; }
# timed NAME COMMAND...: adds the seconds of a command on ctl to NAME's list.
timed() {
  on ctl bash -c 'begin=$(date +%s%N); "${@:2}" > "$HOME/last" 2>&1 || { cat "$HOME/last" >&2; exit 1; }
    echo "$1 $(( ($(date +%s%N) - begin) / 1000000 ))"' bash "$@" | while read -r name ms; do
    awk "BEGIN { print $ms / 1000 }" >> "$results/$name"
    if [[ -t 2 || -n ${VERBOSE:-} ]]; then printf '%6s.%03d s %s\n' $((ms / 1000)) $((ms % 1000)) "$name" >&2; fi
  done
}
# To all hosts at once; $0: their names, $1: the place there, $2: phalanx-env.
each='for h in ${0//,/ }; do one $h "$1" "$2" & pids+=($!); done; for p in ${pids[@]}; do wait $p || exit 1; done'
tar_ssh='one() { ssh $1 mkdir -p $2 && tar -C ~/envs/llm -cf - . | ssh $1 tar -C $2 -xf -; }; '
rsync_ssh='one() { ssh $1 mkdir -p $2 && rsync -a ~/envs/llm/ $1:$2/; }; '
scp_ssh='one() { ssh $1 mkdir -p ${2%/*} && scp -q -r ~/envs/llm $1:${2%/*}/; }; '
zstd_ssh='one() { ssh $1 mkdir -p $2 && tar -C ~/envs/llm -cf - . | zstd -T0 -1 -q |
  ssh $1 "zstd -dq | tar -C $2 -xf - && $3 -- rehome $2"; }; '

first() { timed "push-$1" "$phalanx" env push /root/envs/llm "$2" --to "$there" --quiet; }
clear() { everywhere "rm -rf /root/data"; }
on ctl "$phalanx" exec -H "$names" -- true > /dev/null  # deployed
limit() {
  local host
  for host in ctl ${names//,/ }; do
    if [[ $1 == none ]]; then "$testbed" heal "$host"; else "$testbed" throttle "$host" "$1"; fi
  done
}
for ((round = 0; round < rounds; ++round)); do
  for rate in $rates; do for to in h1 "$names"; do
    limit "$rate"
    n=one-$rate; [[ $to == h1 ]] || n=all-$rate
    for way in $ways; do
      clear
      command=${way}_ssh
      timed "$way-$n" bash -c "${!command}$each" "$to" "$there" "$phalanx-env"
    done
    clear
    on ctl rm -rf /root/.cache/phalanx/sync-index  # as at the very first push
    first "$n" "$to"
    on ctl sh -c 'cd /root/envs/llm/lib/python3*/site-packages
      for i in 0 1 2 3 4 5 6 7 8 9; do echo changed >> "$(find package1$i -name "part*" | head -n 1)"; done'
    timed "again-$n" "$phalanx" env push /root/envs/llm "$to" --to "$there" --quiet
  done; done
done
clear
limit none
# The most that any process of a push holds: launcher, phalanx-env, ssh.
on ctl bash -c 'rm -rf ~/.cache/phalanx/sync-index; /usr/bin/env python3 -c "
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)" "$@"' \
  bash "$phalanx" env push /root/envs/llm h1 --to "$there" --quiet > "$results/memory"

source bench/median.sh
ratio() { awk "BEGIN { printf \"%.2f\", $(median < "$results/$1") / $(median < "$results/$2") }"; }
if [[ $only == ratios ]]; then
  for way in $ways; do
    echo "one_$way $(ratio push-one-none "$way-one-none")"
    echo "all_$way $(ratio push-all-none "$way-all-none")"
  done
  echo "again $(ratio again-all-none push-all-none)"
  echo "memory $(< "$results/memory")"
  exit
fi
echo "env: $files files, $((bytes / 1000000)) MB, medians of $rounds; $(nproc) cores, Linux $(uname -r)"
row() { printf '%-44s %8.2f s %12.2f s\n' "$1" "$(median < "$results/$2-one-$rate")" "$(median < "$results/$2-all-$rate")"; }
declare -A called=([tar]='tar | ssh tar' [rsync]='rsync -a' [scp]='scp -r' [zstd]='tar | zstd -1 | ssh, then phalanx-env rehome')
for rate in $rates; do
  links='links without a limit'
  [[ $rate == none ]] || links="every link $rate, the launcher's too"
  printf '%-44s %10s %14s\n' "$links" '1 host' "$hosts hosts"
  row 'phalanx env push (rewritten and verified)' push
  for way in $ways; do row "${called[$way]}" "$way"; done
  row 'env push again, ten files changed' again
  for way in $ways; do
    echo "$way against env push: $(ratio "$way-one-$rate" "push-one-$rate") to 1 host, $(ratio "$way-all-$rate" "push-all-$rate") to $hosts"
  done
done
echo "largest process of a push: $(< "$results/memory") MB"
