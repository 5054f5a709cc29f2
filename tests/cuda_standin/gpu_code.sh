#!/usr/bin/env bash
# gpu_code.sh NM OBJECT...: the objects hold the code for GPUs: the group over NCCL, with each of its operations.
set -euo pipefail
nm=$1
shift
symbols=$("$nm" --demangle "$@")
for name in start_all_reduce start_reduce_scatter start_all_gather start_broadcast barrier; do
  grep -q "NcclGroup::$name(" <<< "$symbols" || { echo "FAIL: NcclGroup::$name was not compiled"; exit 1; }
done
grep -q 'c10d::ProcessGroupNCCL::ProcessGroupNCCL(' <<< "$symbols" || { echo "FAIL: nothing makes a ProcessGroupNCCL"; exit 1; }
echo "PASS: the code for GPUs compiles"
