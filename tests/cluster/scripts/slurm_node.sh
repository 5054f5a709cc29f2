#!/bin/sh
# Starts munged and slurmctld (on ctl) or slurmd (on a host NAME) below /run/slurm, which every host of a test cluster has to itself.
#   slurm_node.sh NAME HOST=ADDRESS…      all nodes of the partition
set -eu
name=$1
shift
mkdir -p /run/slurm/state /run/slurm/spool
chmod 755 /run/slurm
(umask 077; printf 'k%.0s' $(seq 128) > /run/slurm/munge.key)  # all hosts have the same; it guards nothing
munged --force --key-file=/run/slurm/munge.key --socket=/run/slurm/munge.socket --pid-file=/run/slurm/munged.pid \
  --log-file=/run/slurm/munged.log --seed-file=/run/slurm/munged.seed
cat > /run/slurm/slurm.conf <<CONF
ClusterName=test
SlurmctldHost=ctl(10.77.255.1)
AuthType=auth/munge
AuthInfo=socket=/run/slurm/munge.socket
CryptoType=crypto/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=/run/slurm/state
SlurmdSpoolDir=/run/slurm/spool
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd.pid
SlurmctldLogFile=/run/slurm/slurmctld.log
SlurmdLogFile=/run/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
SrunPortRange=60001-63000
CONF
nodes=
for node in "$@"; do
  echo "NodeName=${node%%=*} NodeAddr=${node#*=} CPUs=16 Sockets=2 CoresPerSocket=8 RealMemory=500" >> /run/slurm/slurm.conf
  nodes=$nodes${nodes:+,}${node%%=*}
done
echo "PartitionName=main Nodes=$nodes Default=YES MaxTime=INFINITE State=UP" >> /run/slurm/slurm.conf
if [ "$name" = ctl ]; then exec slurmctld -f /run/slurm/slurm.conf; else exec slurmd -f /run/slurm/slurm.conf -N "$name"; fi
