# A Slurm of two nodes on this machine, for a test that sources this file: start_slurm FOLDER, stop_slurm, kill_node NAME,
# start_node NAME. Everything lies in FOLDER: configuration, key, sockets, logs. Nothing of a Slurm that the machine may have is
# read or changed, and no systemd is asked. It runs as whoever runs the test.

slurm_folder=
declare -A slurm_pids=()

# free_ports N: ports that nobody listens on, for the next seconds.
free_ports() {
  python3 -c '
import socket, sys
sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
for one in sockets: one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets))' "$1"
}

# started NAME PROGRAM..: in the foreground of a background job, so that its process is known.
started() {
  local name=$1
  shift
  "$@" >>"$slurm_folder/$name.out" 2>&1 </dev/null &
  slurm_pids[$name]=$!
}

start_node() { started "$1" slurmd -D -f "$SLURM_CONF" -N "$1"; }

# processes_with VARIABLE=VALUE: those that this Slurm started with that in their environment.
processes_with() {
  python3 -c '
import os, sys
for process in filter(str.isdigit, os.listdir("/proc")):
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            found = file.read().split(b"\0")
    except OSError:
        continue
    if all(os.fsencode(text) in found for text in sys.argv[1:]):
        print(process)' "$1" "SLURM_CONF=$SLURM_CONF"
}

# kill_node NAME: its daemon, the news of it, which a real cluster takes minutes to notice, and what it runs: not before, as the
# steps of a dead node tell nobody of their end.
kill_node() {
  kill -KILL "${slurm_pids[$1]}"
  scontrol update NodeName="$1" State=DOWN Reason=killed
  processes_with "SLURMD_NODENAME=$1" | xargs --no-run-if-empty kill -KILL || true
}

# start_slurm FOLDER: returns once both nodes are idle; fails with what the logs say.
start_slurm() {
  local name key user port_of_controller port_of_one port_of_two
  slurm_folder=$1
  name=$(hostname -s) user=$(id -un)
  mkdir -p "$slurm_folder"/{state,spool/one,spool/two}
  chmod 755 "$slurm_folder"
  key=$slurm_folder/munge.key
  dd if=/dev/urandom of="$key" bs=1 count=128 status=none
  chmod 600 "$key"
  read -r port_of_controller port_of_one port_of_two < <(free_ports 3)
  cat >"$slurm_folder/slurm.conf" <<CONF
ClusterName=tandem-test
SlurmctldHost=$name(127.0.0.1)
SlurmctldPort=$port_of_controller
AuthType=auth/munge
AuthInfo=socket=$slurm_folder/munge.socket
CredType=cred/munge
SlurmUser=$user
SlurmdUser=$user
StateSaveLocation=$slurm_folder/state
SlurmdSpoolDir=$slurm_folder/spool/%n
SlurmctldPidFile=$slurm_folder/slurmctld.pid
SlurmdPidFile=$slurm_folder/slurmd-%n.pid
SlurmctldLogFile=$slurm_folder/slurmctld.log
SlurmdLogFile=$slurm_folder/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
NodeName=one NodeHostname=$name NodeAddr=127.0.0.1 Port=$port_of_one CPUs=4 State=UNKNOWN
NodeName=two NodeHostname=$name NodeAddr=127.0.0.1 Port=$port_of_two CPUs=4 State=UNKNOWN
PartitionName=test Nodes=one,two Default=YES MaxTime=INFINITE State=UP
CONF
  export SLURM_CONF=$slurm_folder/slurm.conf
  unset "${!SBATCH_@}" "${!SLURM_ARRAY_@}"
  started munged munged --foreground --force --socket="$slurm_folder/munge.socket" --key-file="$key" \
    --pid-file="$slurm_folder/munged.pid" --log-file="$slurm_folder/munged.log" --seed-file="$slurm_folder/munged.seed"
  for _ in {1..100}; do [[ ! -S $slurm_folder/munge.socket ]] || break; sleep 0.1; done
  started slurmctld slurmctld -D -c -f "$SLURM_CONF"
  start_node one
  start_node two
  for _ in {1..60}; do
    [[ $(sinfo --noheader --states=idle --format=%D 2>/dev/null) != 2 ]] || return 0
    sleep 0.5
  done
  tail -n 5 "$slurm_folder"/*.log "$slurm_folder"/*.out >&2
  return 1
}

stop_slurm() {
  [[ -n $slurm_folder ]] || return 0
  scancel --user="$(id -un)" --quiet 2>/dev/null || true
  sleep 0.5
  ((${#slurm_pids[@]} == 0)) || kill "${slurm_pids[@]}" 2>/dev/null || true
  wait "${slurm_pids[@]}" 2>/dev/null || true
}
