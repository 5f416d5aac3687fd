#!/usr/bin/env python3
"""Runs tandem-run in 2 to 16 processes on this machine, round after round, and does something to one of them.

    multi_process.py TANDEM TANDEM_RUN FAKE_GPU [--rounds 32] [--seed 1] [--jobs 4] [--fault NAME]

The seed of a round decides the number of processes, whom it hits, and when; the fault is the next in the list. Of each round is
asked: every process ends, within 10 s of the limit that finds the fault; each with exit code 0, or with 1 and one sentence, which
names the rank, and the task where one was reached; no process and no open port is left. A fault that this machine cannot make is
skipped with a sentence.
"""
import argparse
import concurrent.futures
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from launched_run import Programs, Run
from process_faults import FAULTS, Round

FIRST_PORT, PORTS = 10_000, 20_000  # below those that Linux gives to clients


def unsupported(needs):
    """Why this machine cannot make a fault, or nothing."""
    if needs is None:
        return None
    if os.geteuid() != 0:
        return "it needs root"
    name = f"tandem-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True) if shutil.which("ip") else None
    if made is None or made.returncode != 0:
        return "this machine gives no network namespaces"
    try:
        if needs == "loss":
            command = ["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "lo", "root", "netem", "loss", "10%"]
            if not shutil.which("tc") or subprocess.run(command, capture_output=True).returncode != 0:
                return "this machine's kernel has no netem"
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return None


def lower(programs, folder, size, name, **fields):
    path = folder / f"{name}-{size}.dag"
    scenario = Path(__file__).resolve().parents[2] / "scenarios" / "tiny-host.yaml"
    fields = {"model.layers": 1, "cluster.gpus": size, "training.global_batch": size, **fields,
              "parallelism": f"{{dp: {size}, tp: 1, pp: 1}}"}
    command = [programs.tandem, "lower", str(scenario), "--out", str(path)]
    for field, value in fields.items():
        command += ["--set", f"{field}={value}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return path


def free_port(number):
    for attempt in range(100):
        port = FIRST_PORT + (number * 7 + attempt * 977) % PORTS
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
    raise RuntimeError("no port is free")


def play(programs, dags, folder, fault, seed, number):
    """One round. Returns what was wrong with it, and how long after its limit the last process ended."""
    draw = random.Random(seed)
    size = draw.randint(2, 16)
    own = folder / f"round-{number}"
    own.mkdir()
    run = Run(programs, own, size, free_port(number), dags["step", size])
    play_round = Round(run, draw, dags["other", size])
    try:
        FAULTS[fault].play(play_round)
        play_round.check_the_end()
    except (AssertionError, OSError, EOFError) as error:
        said = "".join(f"\n    {process.name}: {process.popen.returncode} {process.err.read_text().strip()}" for process in run.processes)
        return f"round {number}, seed {seed}, {fault} of {size}: {error}{said}", play_round.late
    finally:
        run.end()
        play_round.clean_up()
        shutil.rmtree(own)
    return None, play_round.late


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for program in ("tandem", "tandem_run", "fake_gpu"):
        parser.add_argument(program)
    parser.add_argument("--rounds", type=int, default=2 * len(FAULTS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--fault", choices=list(FAULTS), action="append", help="only this one; may be given several times")
    arguments = parser.parse_args()
    programs = Programs(arguments.tandem, arguments.tandem_run, arguments.fake_gpu)

    faults = []
    for name in arguments.fault or FAULTS:
        reason = unsupported(FAULTS[name].needs)
        if reason:
            print(f"{name}: skipped, {reason}")
        else:
            faults.append(name)
    if not faults:
        return 77

    tried, late, wrong = dict.fromkeys(faults, 0), dict.fromkeys(faults, 0.0), []
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tandem-rounds-") as temporary:
        folder = Path(temporary)
        dags = {}
        for size in range(2, 17):
            dags["step", size] = lower(programs, folder, size, "step")
            dags["other", size] = lower(programs, folder, size, "other", **{"training.sequence": 64})
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            rounds = {}
            for number in range(arguments.rounds):
                fault, seed = faults[number % len(faults)], arguments.seed * 1_000_003 + number
                rounds[pool.submit(play, programs, dags, folder, fault, seed, number)] = fault
            try:
                for done in concurrent.futures.as_completed(rounds):
                    fault = rounds[done]
                    complaint, after = done.result()
                    tried[fault] += 1
                    late[fault] = max(late[fault], after)
                    if complaint:
                        wrong.append(complaint)
                        print(complaint, flush=True)
            except KeyboardInterrupt:
                print("interrupted: the rounds under way go to their end")
                pool.shutdown(cancel_futures=True)
    print(f"{'fault':<20}{'rounds':>8}{'ended after its limit, at most':>34}")
    for fault in faults:
        print(f"{fault:<20}{tried[fault]:>8}{late[fault]:>32.1f} s")
    print(f"{sum(tried.values())} rounds in {time.monotonic() - began:.0f} s, {len(wrong)} of them wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
