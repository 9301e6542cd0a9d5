#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# network_hosts.sh LAUNCHER [OPTIONS] -- PROGRAM [ARGUMENTS]: runs an Open MPI job (LAUNCHER is its mpirun
# or oshrun) of two ranks on each of two hosts that share nothing but a network. The hosts are namespaces
# of this machine, joined by a virtual cable. Where those cannot be made it says why, and exits with 77.
set -u
limit_s=55

skip() {
  echo "skipped: $*"
  exit 77
}
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
for tool in ip unshare mount timeout; do
  command -v "$tool" >/dev/null || skip "there is no $tool here"
done

launcher=$1
shift
options=()
while [ "$1" != -- ]; do
  options+=("$1")
  shift
done
shift

folder=$(mktemp -d)
spaces=("shoal-$$-1" "shoal-$$-2")
job=
clean_up() {
  [ -n "$job" ] && kill -KILL "$job" 2>/dev/null && wait "$job" 2>/dev/null
  for space in "${spaces[@]}"; do ip netns del "$space" 2>/dev/null; done
  rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 143' TERM INT

for space in "${spaces[@]}"; do
  ip netns add "$space" 2>"$folder/why" || skip "$(cat "$folder/why")"
  ip -n "$space" link set lo up
done
ip -n "${spaces[0]}" link add cable type veth peer name cable netns "${spaces[1]}" 2>"$folder/why" ||
  skip "$(cat "$folder/why")"
for i in 1 2; do
  echo "10.218.77.$i host$i" >>"$folder/hosts"
  ip -n "${spaces[i - 1]}" addr add "10.218.77.$i/24" dev cable
  ip -n "${spaces[i - 1]}" link set cable up
done
for space in "${spaces[@]}"; do  # the kernel tells a moment later that the cable is plugged in
  for _ in $(seq 100); do
    ip -n "$space" link show cable | grep -q 'state UP' && break
    sleep 0.05
  done
done
echo "127.0.0.1 localhost" >>"$folder/hosts"

# enter NUMBER COMMAND: becomes the shell command on that host, whose processes end with its first.
cat >"$folder/enter" <<END
#!/bin/sh
number=\$1; shift
exec ip netns exec "shoal-$$-\$number" unshare --uts --ipc --mount --pid --fork --kill-child --mount-proc \\
  sh -c 'hostname "host\$0" && mount --bind $folder/hosts /etc/hosts && mount -t tmpfs tmpfs /dev/shm && eval "\$1"' \\
  "\$number" "\$*"
END
# The launcher calls it as it would ssh: agent HOST COMMAND.
cat >"$folder/agent" <<END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
number=\${1#host}; shift
exec "$folder/enter" "\$number" "\$@"
END
chmod +x "$folder/enter" "$folder/agent"
"$folder/enter" 1 true 2>"$folder/why" || skip "$(cat "$folder/why")"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
command=$(printf '%q ' "$launcher" --host host1:2,host2:2 -n 4 --bind-to none --leave-session-attached --mca plm rsh \
  --mca plm_rsh_agent "$folder/agent" --mca plm_rsh_no_tree_spawn 1 --mca orte_tmpdir_base "$folder" \
  --mca oob_tcp_if_include cable --mca btl_tcp_if_include cable --mca mpi_yield_when_idle 1 \
  --mca osc ^rdma -x UCX_NET_DEVICES=cable "${options[@]}" "$@")
timeout --kill-after=1 "$limit_s" "$folder/enter" 1 "exec $command" </dev/null &
job=$!
wait "$job"
code=$?
job=
exit "$code"
