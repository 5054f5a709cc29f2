#!/usr/bin/env bash
# Code to hosts without a shared file system: `phalanx run --sync` beside rsync to each host, cold and after one line was changed,
# taking turns on the same test cluster. A time of phalanx is the whole run of `true`, with its checks and its end; of rsync the
# copies alone, to all hosts at once and one after another. `phalanx run` without --sync shows what a start costs by itself. Needs root.
# Usage: bench/sync.sh [BUILD_FOLDER]; HOSTS=4, FILES=20000, BYTES=200000000 and ROUNDS=3 in the environment change the plan.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
build=$(readlink -f "${1:-build/train}")
phalanx=$build/phalanx testbed=$build/tests/cluster/testbed
for program in "$phalanx" "$testbed"; do
  [[ -x $program ]] || { printf 'error: %s is missing\nhint: ./x build\n' "$program" >&2; exit 2; }
done
command -v rsync > /dev/null || { echo "error: rsync is missing" >&2; echo "hint: apt-get install rsync" >&2; exit 2; }
((EUID == 0)) || { echo "bench sync: skipped, the test cluster needs root" >&2; exit 0; }

hosts=${HOSTS:-4} files=${FILES:-20000} bytes=${BYTES:-200000000} rounds=${ROUNDS:-3}
results=$(mktemp -d)
export TESTBED=bench-sync-$$
trap '"$testbed" down; rm -rf "$results"' EXIT
"$testbed" up "$hosts" --detach
on() { local host=$1; shift; "$testbed" exec "$host" "$@"; }

# Half of the bytes in 99 % of the files, as in a project with some data; incompressible, all different.
on ctl python3 - "$files" "$bytes" << 'EOF'
import os, sys
files, size = int(sys.argv[1]), int(sys.argv[2])
large = max(1, files // 100)
for i in range(files):
    folder = os.path.expanduser(f"~/project/part{i % 100}")
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/file{i}", "wb") as f:
        f.write(f"line of file {i}\n".encode() + os.urandom(size // 2 // (large if i < large else files - large)))
EOF

names=h1; for ((h = 2; h <= hosts; ++h)); do names+=,h$h; done
# timed NAME COMMAND...: adds the seconds of a command on ctl to NAME's list.
timed() {
  on ctl bash -c 'begin=$(date +%s%N); "${@:2}" > "$HOME/last" 2>&1 || { cat "$HOME/last" >&2; exit 1; }
    echo "$1 $(( ($(date +%s%N) - begin) / 1000000 ))"' bash "$@" | while read -r name ms; do
    awk "BEGIN { print $ms / 1000 }" >> "$results/$name"
  done
}
launch=("$phalanx" run -H "$names")
everywhere() { for ((h = 1; h <= hosts; ++h)); do on "h$h" sh -c "$1"; done; }
at_once='for h in ${0//,/ }; do rsync -a --delete ~/project/ $h:copy/ & pids+=($!); done; for p in ${pids[@]}; do wait $p || exit 1; done'
in_turn='for h in ${0//,/ }; do rsync -a --delete ~/project/ $h:copy/ || exit 1; done'

on ctl "${launch[@]}" -- true > /dev/null  # deployed
for ((round = 0; round < rounds; ++round)); do
  for when in cold line; do
    if [[ $when == cold ]]; then everywhere 'rm -rf ~/.cache/phalanx/sync ~/copy'; fi
    [[ $when == cold ]] || on ctl sh -c "echo changed in round $round >> ~/project/part7/file$((files / 2 / 100 * 100 + 7))"
    timed "sync-$when" "${launch[@]}" --sync=/root/project -C /root/project -- true
    timed "rsync-$when" bash -c "$at_once" "$names"
    if [[ $when == cold ]]; then everywhere 'rm -rf ~/copy'; else on ctl sh -c 'echo again >> ~/project/part7/file7'; fi
    timed "turn-$when" bash -c "$in_turn" "$names"
    timed "plain" "${launch[@]}" -- true
  done
done

source bench/median.sh
echo "sync: $files files, $((bytes / 1000000)) MB, $hosts hosts, medians of $rounds; $(nproc) cores, Linux $(uname -r)"
printf '%-38s %10s %16s\n' '' cold 'one line changed'
row() { printf '%-38s %8.2f s %14.2f s\n' "$1" "$(median < "$results/$2-cold")" "$(median < "$results/$2-line")"; }
row 'phalanx run --sync -- true' sync
row 'rsync -a to all hosts at once' rsync
row 'rsync -a to one host after another' turn
printf '%-38s %8.2f s\n' 'phalanx run -- true' "$(median < "$results/plain")"
ratio() { awk "BEGIN { printf \"%.2f\", $(median < "$results/$1") / $(median < "$results/$2") }"; }
echo "run --sync against rsync at once: $(ratio sync-cold rsync-cold) cold, $(ratio sync-line rsync-line) after one line"
