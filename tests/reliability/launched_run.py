"""The processes of one launched run of tandem-run, each with a GPU that a module pretends to have."""
import os
import secrets
import signal
import socket
import subprocess
import time
from pathlib import Path


class Limits:
    """Of a round, in seconds. A process that is told to end has 10 s for it."""

    join, stall, silence = 8, 6, 4  # who is silent is silent before he is stuck
    ends_within = 10
    hangs = 60  # nothing of a round may take so long


class Programs:
    def __init__(self, tandem, tandem_run, fake_gpu):
        self.tandem, self.tandem_run, self.fake_gpu = (str(Path(path).resolve()) for path in (tandem, tandem_run, fake_gpu))


class Ended:
    def __init__(self, status, out, err, after):
        self.status, self.out, self.err, self.after = status, out, err, after


class Process:
    def __init__(self, name, popen, out, err):
        self.name, self.popen, self.out, self.err = name, popen, out, err
        self.ended = None

    def signal(self, number):
        if self.poll() is None:
            self.popen.send_signal(number)

    def poll(self):
        """How it ended, or nothing yet."""
        if self.ended is None and self.popen.poll() is not None:
            self.ended = Ended(self.popen.returncode, self.out.read_text(), self.err.read_text(), time.monotonic())
        return self.ended


class Run:
    """`in_namespace(rank)` names the network namespace of a rank, or is None."""

    def __init__(self, programs, folder, size, port, dag, address="127.0.0.1", in_namespace=None):
        self.programs, self.folder, self.size, self.port, self.dag = programs, folder, size, port, dag
        self.address, self.in_namespace = address, in_namespace or (lambda rank: None)
        self.mark = folder / "mark"
        self.token = secrets.token_hex(16)
        self.secret = secrets.token_hex(32)
        self.processes = []

    def start(self, rank, dag=None, name=None, **variables):
        """Starts one process. A variable that is None is left out."""
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.folder), "RANK": str(rank), "WORLD_SIZE": str(self.size),
            "LOCAL_RANK": str(rank), "MASTER_ADDR": self.address, "MASTER_PORT": str(self.port),
            "TANDEM_CUDA_MODULE": self.programs.fake_gpu, "FAKE_GPU_SECONDS": "0.01", "FAKE_GPU_MARK": str(self.mark),
            "TANDEM_JOIN_TIMEOUT": str(Limits.join), "TANDEM_STALL_TIMEOUT": str(Limits.stall),
            "TANDEM_SILENCE_TIMEOUT": str(Limits.silence), "TANDEM_SECRET": self.secret, "TANDEM_TEST_ROUND": self.token,
        }
        environment.update(variables)
        environment = {key: value for key, value in environment.items() if value is not None}
        number = len(self.processes)
        out, err = self.folder / f"{number}.out", self.folder / f"{number}.err"
        namespace = self.in_namespace(rank)
        command = [self.programs.tandem_run, str(dag or self.dag), "--backend", "cuda"]
        if namespace:
            command = ["ip", "netns", "exec", namespace] + command
        with open(out, "w") as to_out, open(err, "w") as to_err:
            popen = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=to_out, stderr=to_err, env=environment)
        process = Process(name or f"rank {rank}", popen, out, err)
        self.processes.append(process)
        return process

    def start_all(self, but=(), **variables):
        return {rank: self.start(rank, **variables) for rank in range(self.size) if rank not in but}

    def wait_for_mark(self):
        """Waits until the rank that hangs has come to its task, and that has been reported; returns the task as sentences name it."""
        deadline = time.monotonic() + Limits.hangs
        while not (self.mark.exists() and self.mark.read_text().endswith("\n")):
            if time.monotonic() > deadline or any(process.poll() for process in self.processes):
                raise AssertionError("the rank that hangs did not come to its task")
            time.sleep(0.02)
        time.sleep(1.2)  # two reports
        return "'" + self.mark.read_text().strip()

    def wait(self, but=(), limit=Limits.hangs):
        """Waits for all processes but some; says which still run."""
        deadline = time.monotonic() + limit
        waited = [process for process in self.processes if process not in but]
        while time.monotonic() < deadline and not all(process.poll() for process in waited):
            time.sleep(0.02)
        return [process.name for process in waited if not process.poll()]

    def left_behind(self):
        """Processes of this round that still run, by what stands in their environment."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if self.token.encode() in (entry / "environ").read_bytes() and "Z" not in (entry / "stat").read_text().split()[2]:
                    found.append(f"{entry.name}: {(entry / 'cmdline').read_bytes().decode()}")
            except OSError:
                pass
        return found

    def port_is_open(self):
        if self.in_namespace(0):
            listening = subprocess.run(["ip", "netns", "exec", self.in_namespace(0), "ss", "-Hltn"], capture_output=True, text=True)
            return f":{self.port} " in listening.stdout
        with socket.socket() as probe:
            return probe.connect_ex((self.address, self.port)) == 0

    def end(self):
        for process in self.processes:
            if not process.poll():
                process.popen.send_signal(signal.SIGKILL)
                process.popen.wait()
