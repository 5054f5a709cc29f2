#!/bin/sh
# Podman with everything of its own below /tmp/pod, the image `world`, which has links but no programs (/usr is mounted), and a container
# NAME of it that sleeps. Prints "cannot: WHY" where containers cannot be started.
# usage: podman_host.sh NAME SOURCES BUILD
name=$1 sources=$2 build=$3
mkdir -p /tmp/pod/root/usr /tmp/pod/root/etc/alternatives /tmp/pod/root/tmp /tmp/pod/root/root /tmp/pod/root/var/tmp \
  "/tmp/pod/root$sources" "/tmp/pod/root$build"
for link in bin sbin lib lib32 lib64; do test ! -h /$link || ln -s "$(readlink /$link)" "/tmp/pod/root/$link"; done
cp /etc/passwd /etc/group /tmp/pod/root/etc
echo world > /tmp/pod/root/etc/mark
# Where this machine has no right to raise limits, podman's own defaults would be refused; where controllers of version 1 are mounted, crun
# is of no use.
runtime=crun
test -e /sys/fs/cgroup/cgroup.controllers || runtime=runc
cat > /tmp/pod/containers.conf <<CONF
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
runtime = "$runtime"
cgroup_manager = "cgroupfs"
events_logger = "none"
CONF
cat > /tmp/pod/storage.conf <<CONF
[storage]
driver = "vfs"
graphroot = "/tmp/pod/store"
runroot = "/tmp/pod/run"
CONF
export CONTAINERS_CONF=/tmp/pod/containers.conf CONTAINERS_STORAGE_CONF=/tmp/pod/storage.conf
{ tar -C /tmp/pod/root -c . | podman import - world && podman run --detach --name "$name" --network host --ipc host --pid host \
  -v /usr:/usr:ro -v /etc/alternatives:/etc/alternatives:ro \
  -v "$sources:$sources:ro" -v "$build:$build:ro" world sleep 100000; } > /tmp/pod/log 2>&1 ||
  echo "cannot: $(tail -n 1 /tmp/pod/log)"
