#!/usr/bin/env bash
# Starts on healthy hosts that share a busy machine: none may be refused, and nothing may be found that is not there. Needs root.
# Usage: bench/false_alarms.sh [BUILD_FOLDER] [--hosts 64,128] [--starts 50] [--conditions idle,busy,throttled,slow,swap]
#   idle       nothing else runs: what is found here is what the machine itself has, and is what the others are held against
#   busy       eight loops that use the processors
#   throttled  all hosts together have one processor (cgroup v1 cpu)
#   slow       the working directory is on a file system that takes 200 ms for every operation (FUSE; needs python3-fusepy)
#   swap       a quarter of the memory is held by a program and swapped out to compressed memory (zram)
# A condition that cannot be made here is skipped, by name. The checks are waited for (--reuse-checks 0), connections are kept.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
build=build/train
if (($#)) && [[ $1 != --* ]]; then build=$1; shift; fi
build=$(readlink -f "$build")
sizes=64,128 starts=50 conditions=idle,busy,throttled,slow,swap
while (($#)); do
  case $1 in
    --hosts) sizes=$2 ;;
    --starts) starts=$2 ;;
    --conditions) conditions=$2 ;;
    *) echo "error: unknown option $1" >&2; exit 2 ;;
  esac
  shift 2
done
phalanx=$build/phalanx testbed=$build/tests/cluster/testbed
for program in "$phalanx" "$testbed"; do
  [[ -x $program ]] || { printf 'error: %s is missing\nhint: ./x build\n' "$program" >&2; exit 2; }
done
((EUID == 0)) || { echo "bench false_alarms: skipped, the test cluster needs root" >&2; exit 0; }

export TESTBED=bench-false-$$
folder=$(mktemp -d "$build/false-alarms-XXXXXX")
helpers=()
end_condition() {
  ((${#helpers[@]} == 0)) || kill "${helpers[@]}" 2> /dev/null || true
  helpers=()
  if [[ -n ${cpu_group:-} ]]; then
    while read -r pid; do echo "$pid" > /sys/fs/cgroup/cpu/tasks || true; done < "$cpu_group/tasks" 2> /dev/null
    rmdir "$cpu_group" 2> /dev/null || true
    cpu_group=
  fi
  if mountpoint -q "$folder/slow"; then umount -l "$folder/slow"; fi
  if [[ -n ${zram:-} ]]; then
    swapoff "$zram" || true
    echo "${zram#/dev/zram}" > /sys/class/zram-control/hot_remove || true
    zram=
  fi
}
trap 'end_condition; "$testbed" down > /dev/null 2>&1 || true; rm -rf "$folder"' EXIT

# make_CONDITION: false if it cannot be made here; sets `where`, the working directory.
make_idle() { :; }
make_busy() {
  local i
  for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & helpers+=($!); done
}
# Every process that is started from here on is in the group: the cluster and the launcher.
make_throttled() {
  [[ -d /sys/fs/cgroup/cpu ]] || { echo "no cgroup v1 cpu controller"; return 1; }
  cpu_group=/sys/fs/cgroup/cpu/phalanx-false-alarms-$$
  mkdir "$cpu_group"
  echo 100000 > "$cpu_group/cpu.cfs_period_us"
  echo 100000 > "$cpu_group/cpu.cfs_quota_us"
  echo $$ > "$cpu_group/tasks"
}
make_slow() {
  /usr/bin/python3 -c 'import fusepy' 2> /dev/null || { echo "python3-fusepy is not installed"; return 1; }
  [[ -c /dev/fuse ]] || { echo "no /dev/fuse"; return 1; }
  mkdir -p "$folder/slow"
  /usr/bin/python3 bench/slow_folder.py "$folder/slow" 0.2 & helpers+=($!)
  local i
  for i in {1..50}; do mountpoint -q "$folder/slow" && break; sleep 0.1; done
  mountpoint -q "$folder/slow" || { echo "the slow file system could not be mounted"; return 1; }
  where=$folder/slow
}
make_swap() {
  [[ -e /sys/class/zram-control/hot_add ]] || modprobe zram 2> /dev/null || { echo "no zram"; return 1; }
  [[ -e /sys/class/zram-control/hot_add ]] || { echo "no zram"; return 1; }
  zram=/dev/zram$(< /sys/class/zram-control/hot_add)
  { echo 8G > "/sys/block/${zram#/dev/}/disksize" && mkswap "$zram" > /dev/null && swapon "$zram"; } ||
    { echo "no swap on zram"; return 1; }
  /usr/bin/python3 -c '
import mmap, sys, time
size = int(sys.argv[1]) * 1024
held = mmap.mmap(-1, size)
for at in range(0, size, 4096):
    held[at] = 1
held.madvise(21)  # MADV_PAGEOUT
while True:
    time.sleep(60)' "$(awk '/MemTotal/ { print int($2 / 4) }' /proc/meminfo)" & helpers+=($!)
  local i
  for i in {1..300}; do
    sleep 0.2
    (($(awk '/SwapTotal/ { t = $2 } /SwapFree/ { print t - $2 }' /proc/meminfo) > 100000)) && return
  done
  echo "nothing was swapped out"
  return 1
}

printf '%-10s %6s %7s %8s %9s  %s\n' condition hosts starts refused "longest s" findings
for size in ${sizes//,/ }; do
  hosts=$(printf 'h%d,' $(seq "$size")); hosts=${hosts%,}
  for condition in ${conditions//,/ }; do
    where=/tmp
    if ! "make_$condition" > "$folder/why"; then  # `set -e` does not hold inside: each step is checked
      printf '%-10s %6d skipped: %s\n' "$condition" "$size" "$(< "$folder/why")"
      end_condition
      continue
    fi
    "$testbed" up "$size" --detach
    refused=0 longest=0
    : > "$folder/findings"
    for ((i = 0; i < starts; ++i)); do
      began=$EPOCHREALTIME
      "$testbed" exec ctl "$phalanx" run -H "$hosts" --nproc-per-node 1 --reuse-checks 0 --json -C "$where" -- true \
        > "$folder/out" 2> "$folder/err" || { refused=$((refused + 1)); cp "$folder/err" "$folder/refused-$condition-$size-$i"; }
      longest=$(awk -v a="$began" -v b="$EPOCHREALTIME" -v most="$longest" 'BEGIN { t = b - a; printf "%.1f", (t > most ? t : most) }')
      grep -ohE \
        '\b(GPU|VIS|NET|IB|NCCL|RDZV|ENV|FS|TIME|LIM|PROC|CMD|DATA|PERF)-[A-Z0-9-]+' \
        "$folder/out" "$folder/err" | sort -u >> "$folder/findings" || true
    done
    printf '%-10s %6d %7d %8d %9s  %s\n' "$condition" "$size" "$starts" "$refused" "$longest" \
      "$(sort "$folder/findings" | uniq -c | awk '{ printf "%s%s ×%d", (NR > 1 ? ", " : ""), $2, $1 }')"
    for file in "$folder"/refused-*; do [[ -f $file ]] && { head -n 12 "$file"; break; }; done
    rm -f "$folder"/refused-*
    "$testbed" down > /dev/null
    end_condition
  done
done
