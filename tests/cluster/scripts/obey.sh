#!/bin/sh
# A rank that does what it is told: prints "rank R ready", then runs each line written to /tmp/tell-R in its own shell.
trap - TERM INT
mkfifo "/tmp/tell-$RANK"
echo "rank $RANK ready"
while read -r line < "/tmp/tell-$RANK"; do
  eval "$line"
done
