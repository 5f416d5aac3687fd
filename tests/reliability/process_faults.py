"""What is done to one process of a run, and what all of them must then say."""
import os
import signal
import socket
import subprocess
import threading
import time

import rank_impostor
from launched_run import Limits

TASKS = 3 * 45  # of a rank, in the three times that the step runs


class Round:
    """One run, its victim, and what is asked of its end."""

    def __init__(self, run, draw, other_dag):
        self.run, self.draw, self.other_dag = run, draw, other_dag
        self.victim = draw.randrange(run.size)
        self.late = 0.0
        self.undo = []

    @property
    def others(self):
        return [rank for rank in range(self.run.size) if rank != self.victim]

    def named(self):
        """How a sentence of the other processes begins to speak of the victim."""
        return f"rank 0 at {self.run.address}:{self.run.port} " if self.victim == 0 else f"rank {self.victim} on "

    def start_with_hang(self):
        """All processes; the victim hangs at a task, which is returned."""
        self.processes = self.run.start_all(
            FAKE_GPU_HANGS=str(self.victim), FAKE_GPU_HANGS_AT=str(self.draw.randrange(TASKS)))
        return self.run.wait_for_mark()

    def wait_for_all(self, begin, limit, but=()):
        """All processes but some have ended 10 s after the limit that finds the fault."""
        left = self.run.wait(but, limit + Limits.ends_within + max(0.0, begin - time.monotonic()))
        assert not left, f"{', '.join(left)} did not end within {limit} + {Limits.ends_within} s"
        ends = [process.ended.after for process in self.run.processes if process not in but]
        self.late = max([self.late] + [end - begin - limit for end in ends])

    def expect_success(self, processes):
        for process in processes:
            assert process.ended.status == 0, f"{process.name} ended with {process.ended.status}, expected 0"
            assert not process.ended.err, f"{process.name} complains although it succeeds"

    def expect_sentence(self, processes, *words):
        for process in processes:
            assert process.ended.status == 1, f"{process.name} ended with {process.ended.status}, expected 1"
            assert process.ended.err.count("\n") == 1, f"{process.name} says something else than one sentence"
            said_by_program = process.ended.err.startswith("tandem-run: ") or "did not end by itself" in process.ended.err
            assert said_by_program, f"{process.name} does not say who speaks"
            for word in words:
                assert word in process.ended.err, f"{process.name} does not say: {word}"

    def expect_sentence_of_those_who_came(self, processes, *words):
        """A process that came when rank 0 had ended says that nobody is there; rank 0 itself says why."""
        came = [process for process in processes if "could not be joined" not in process.ended.err]
        self.expect_sentence([process for process in processes if process not in came], "rank 0 at ")
        self.expect_sentence(came, *words)
        assert self.processes[0] in came or self.processes[0] not in processes, "rank 0 does not say why"

    def succeeded(self):
        return all(process.ended.status == 0 for process in self.run.processes)

    def of_ranks(self, ranks):
        return [self.processes[rank] for rank in ranks]

    def check_the_end(self):
        left = self.run.wait((), Limits.ends_within)
        assert not left, f"{', '.join(left)} still runs"
        for _ in range(20):
            if not (behind := self.run.left_behind()):
                break
            time.sleep(0.05)
        assert not behind, f"left behind: {behind}"
        assert not self.run.port_is_open(), f"port {self.run.port} is left open"

    def clean_up(self):
        for undo in reversed(self.undo):
            undo()


class Fault:
    def __init__(self, play, needs=None):
        self.play, self.needs = play, needs


def nothing(round):
    round.processes = round.run.start_all(TANDEM_SECRET=None)  # the user's own secret, which whoever comes first writes
    round.wait_for_all(time.monotonic(), Limits.hangs)
    round.expect_success(round.run.processes)


def killed_at_a_task(round):
    task = round.start_with_hang()
    round.processes[round.victim].signal(signal.SIGKILL)
    round.wait_for_all(time.monotonic(), 0)
    round.expect_sentence(round.of_ranks(round.others), round.named(), "ended without a word", f"last at task {task}")


def killed_at_any_time(round):
    round.processes = round.run.start_all()
    time.sleep(round.draw.uniform(0, 3))
    victim = round.processes[round.victim]
    victim.signal(signal.SIGKILL)
    round.wait_for_all(time.monotonic(), Limits.join)
    if victim.ended.status == 0:
        return round.expect_success(round.run.processes)
    others = round.of_ranks(round.others)
    if all(process.ended.status == 0 for process in others):
        return None  # it had left, and had only to end
    if round.victim == 0:
        return round.expect_sentence(others, f"rank 0 at {round.run.address}:{round.run.port} ")
    return round.expect_sentence_of_those_who_came(others, f"rank {round.victim} ")


def stopped_at_a_task(round):
    task = round.start_with_hang()
    victim = round.processes[round.victim]
    victim.signal(signal.SIGSTOP)
    round.wait_for_all(time.monotonic(), Limits.silence, but=[victim])
    round.expect_sentence(round.of_ranks(round.others), round.named(), f"has not been heard of for {Limits.silence} s",
                          f"last at task {task}")
    victim.signal(signal.SIGCONT)
    round.wait_for_all(time.monotonic(), 0)
    # It hangs, so it is ended; what it says then is why the others are gone.
    round.expect_sentence([victim], round.named(), f"has not been heard of for {Limits.silence} s", "did not end by itself")


def stopped_at_any_time(round):
    round.processes = round.run.start_all()
    time.sleep(round.draw.uniform(0, 3))
    victim = round.processes[round.victim]
    victim.signal(signal.SIGSTOP)
    round.wait_for_all(time.monotonic(), max(Limits.join, Limits.silence), but=[victim])
    others = round.of_ranks(round.others)
    if any(process.ended.status for process in others):
        round.expect_sentence_of_those_who_came(others, f"rank {round.victim} ")
    victim.signal(signal.SIGCONT)
    round.wait_for_all(time.monotonic(), Limits.join)
    if victim.ended.status:
        round.expect_sentence([victim], "rank ")


def stuck(round):
    task = round.start_with_hang()
    round.wait_for_all(time.monotonic(), Limits.stall)
    words = [f"rank {round.victim} on ", f"has made no progress for {Limits.stall} s at task {task} while others wait"]
    round.expect_sentence(round.run.processes, *words)
    round.expect_sentence([round.processes[round.victim]], "did not end by itself")


def slowed(round):
    """It runs a quarter of the time, for all of the run."""
    round.processes = round.run.start_all()
    victim = round.processes[round.victim]
    begin = time.monotonic()
    while not victim.poll():
        assert time.monotonic() - begin < Limits.hangs, "a slow process keeps the run from its end"
        victim.signal(signal.SIGSTOP)
        time.sleep(0.3)
        victim.signal(signal.SIGCONT)
        time.sleep(0.1)
    round.wait_for_all(time.monotonic(), 0)
    round.expect_success(round.run.processes)


def late(round):
    round.processes = round.run.start_all(but=[round.victim])
    time.sleep(round.draw.uniform(0, Limits.join / 2))
    round.processes[round.victim] = round.run.start(round.victim)
    round.wait_for_all(time.monotonic(), Limits.hangs)
    round.expect_success(round.run.processes)


def too_late(round):
    begin = time.monotonic()
    round.processes = round.run.start_all(but=[round.victim])
    round.wait_for_all(begin, Limits.join)
    if round.victim == 0:
        round.expect_sentence(round.run.processes, f"rank 0 at {round.run.address}:{round.run.port} could not be joined")
    else:
        round.expect_sentence(round.run.processes, f"rank {round.victim} of {round.run.size} did not come to ")
    begin = time.monotonic()
    last = round.run.start(round.victim)
    round.wait_for_all(begin, Limits.join)
    round.expect_sentence([last], "rank 0 at " if round.victim else "did not come to ")


def twice(round):
    """Two processes of a rank; another rank comes only later, so that both find rank 0 waiting."""
    waits = round.draw.choice([rank for rank in round.others if rank != 0] or [None])
    begin = time.monotonic()
    round.processes = round.run.start_all(but=[waits])
    again = round.run.start(round.victim, name=f"the second rank {round.victim}")
    time.sleep(round.draw.uniform(0, 1.5))
    if waits is not None:
        round.processes[waits] = round.run.start(waits)
    round.wait_for_all(begin, Limits.join)
    if round.victim == 0:
        _, another = sorted([round.processes[0], again], key=lambda process: process.ended.status)
        round.expect_sentence([another], f"rank 0 cannot listen at port {round.run.port}")
        return round.expect_success([process for process in round.run.processes if process is not another])
    refused = f"two processes claim to be rank {round.victim}, on "
    if any(refused in process.ended.err for process in round.run.processes):
        return round.expect_sentence_of_those_who_came(round.run.processes, refused)
    # The first had its place when the last came, so the second found nobody.
    _, another = sorted([round.processes[round.victim], again], key=lambda process: process.ended.status)
    round.expect_sentence([another], "rank 0 at ", "could not be joined")
    return round.expect_success([process for process in round.run.processes if process is not another])


def another_dag(round):
    round.processes = round.run.start_all(but=[round.victim])
    round.processes[round.victim] = round.run.start(round.victim, dag=round.other_dag)
    round.wait_for_all(time.monotonic(), 0)
    if round.victim == 0:
        return round.expect_sentence(round.run.processes, "another DAG file than rank 0", "rank 1" if round.run.size == 2 else "ranks 1")
    return round.expect_sentence(round.run.processes, f"rank {round.victim} has another DAG file than rank 0")


def another_version(round):
    if round.victim == 0:
        round.victim = 1
    round.processes = round.run.start_all(but=[round.victim])
    payload = rank_impostor.hello(b"0.0-of-a-test", b"", round.run.size, round.victim, b"elsewhere")
    begin = time.monotonic()
    sentence = rank_impostor.join(round.run.port, round.run.secret.encode(), payload, Limits.hangs)
    expected = f"rank {round.victim} on elsewhere is Tandem 0.0-of-a-test, rank 0"
    assert expected in sentence, f"the impostor was told: {sentence}"
    round.wait_for_all(begin, 0 if round.run.size == 2 else Limits.join)
    round.expect_sentence_of_those_who_came(round.run.processes, expected)


def another_secret(round):
    round.processes = round.run.start_all(but=[round.victim])
    begin = time.monotonic()
    stranger = round.processes[round.victim] = round.run.start(round.victim, TANDEM_SECRET="not the secret of this run")
    round.wait_for_all(begin, Limits.join)
    if round.victim == 0:
        round.expect_sentence(round.of_ranks(round.others), "rank 0 at ", "could not be joined within", "has another secret")
        return round.expect_sentence([stranger], f"of {round.run.size} did not come to ", "did not prove to be of this run")
    round.expect_sentence_of_those_who_came(
        round.of_ranks(round.others), f"rank {round.victim} of {round.run.size} did not come to ",
        "did not prove to be of this run; the last, from 127.0.0.1 has another secret")
    return round.expect_sentence([stranger], "rank 0 at ", "could not be joined within")


def strangers(round):
    """Many connections that say nothing, or anything, while the processes come; the run goes on as if they were not there."""
    rubbish = [b"", b"GET / HTTP/1.1\r\n\r\n", round.draw.randbytes(72), rank_impostor.NAME + round.draw.randbytes(64),
               rank_impostor.message(rank_impostor.HELLO, round.draw.randbytes(100)), round.draw.randbytes(5000)]
    stop = threading.Event()

    def knock():
        held = []
        while not stop.is_set():
            try:
                connection = socket.create_connection(("127.0.0.1", round.run.port), timeout=1)
                connection.sendall(round.draw.choice(rubbish))
                held.append(connection)
            except OSError:
                time.sleep(0.01)
            if len(held) > 300:
                held.pop(0).close()
        for connection in held:
            connection.close()

    knocking = threading.Thread(target=knock)
    knocking.start()
    try:
        round.processes = round.run.start_all(but=[round.victim])
        time.sleep(round.draw.uniform(0, 2))
        round.processes[round.victim] = round.run.start(round.victim)
        round.wait_for_all(time.monotonic(), Limits.hangs)
    finally:
        stop.set()
        knocking.join()
    round.expect_success(round.run.processes)


class TwoNetworks:
    """Two network namespaces with a cable between them."""

    def __init__(self, round):
        tag = f"{os.getpid() % 100000}-{round.run.port}"
        self.names = [f"tandem-{tag}-a", f"tandem-{tag}-b"]
        self.cables = [f"ta{round.run.port}", f"tb{round.run.port}"]
        for name in self.names:
            self.ip("netns", "add", name)
            round.undo.append(lambda name=name: self.ip("netns", "del", name))
        self.ip("link", "add", self.cables[0], "type", "veth", "peer", "name", self.cables[1])
        for number, (name, cable) in enumerate(zip(self.names, self.cables), 1):
            self.ip("link", "set", cable, "netns", name)
            self.ip("-n", name, "addr", "add", f"10.213.7.{number}/24", "dev", cable)
            self.ip("-n", name, "link", "set", cable, "up")
            self.ip("-n", name, "link", "set", "lo", "up")
        round.run.address = "10.213.7.1"
        self.far = [rank for rank in range(1, round.run.size) if rank == round.victim or round.draw.random() < 0.5]
        if not self.far:
            self.far = [round.run.size - 1]
        round.run.in_namespace = lambda rank: self.names[rank in self.far]

    @staticmethod
    def ip(*arguments):
        subprocess.run(["ip", *arguments], check=True, capture_output=True)


def cut_off(round):
    networks = TwoNetworks(round)
    round.victim = round.draw.choice(networks.far)
    task = round.start_with_hang()
    networks.ip("-n", networks.names[1], "link", "set", networks.cables[1], "down")
    round.wait_for_all(time.monotonic(), Limits.silence)
    for rank, process in round.processes.items():
        heard = f"has not been heard of for {Limits.silence} s, last at task"
        if rank in networks.far:
            round.expect_sentence([process], f"rank 0 at {round.run.address}:{round.run.port} {heard}")
        else:
            assert any(f"rank {far} on " in process.ended.err for far in networks.far), f"{process.name} names no rank that was cut off"
            round.expect_sentence([process], heard)
            if networks.far == [round.victim]:
                round.expect_sentence([process], f"last at task {task}")


def cable_flaps(round):
    """What is sent while the cable is out is lost, and has to be sent again."""
    networks = TwoNetworks(round)
    round.processes = round.run.start_all()
    begin = time.monotonic()
    while not all(process.poll() for process in round.run.processes):
        assert time.monotonic() - begin < Limits.hangs, "lost packets keep the run from its end"
        for state, seconds in (("down", round.draw.uniform(0.05, 0.4)), ("up", round.draw.uniform(0.5, 1))):
            networks.ip("-n", networks.names[1], "link", "set", networks.cables[1], state)
            time.sleep(seconds)
    round.wait_for_all(time.monotonic(), 0)
    round.expect_success(round.run.processes)


def packets_lost(round):
    networks = TwoNetworks(round)
    subprocess.run(["ip", "netns", "exec", networks.names[0], "tc", "qdisc", "add", "dev", networks.cables[0], "root", "netem",
                    "loss", "10%", "delay", "5ms"], check=True, capture_output=True)
    round.processes = round.run.start_all()
    round.wait_for_all(time.monotonic(), Limits.hangs)
    if not round.succeeded():  # so much was lost that somebody was not heard of
        round.expect_sentence(round.run.processes, "rank ")


FAULTS = {
    "nothing": Fault(nothing),
    "killed-at-a-task": Fault(killed_at_a_task),
    "killed-at-any-time": Fault(killed_at_any_time),
    "stopped-at-a-task": Fault(stopped_at_a_task),
    "stopped-at-any-time": Fault(stopped_at_any_time),
    "stuck": Fault(stuck),
    "slowed": Fault(slowed),
    "late": Fault(late),
    "too-late": Fault(too_late),
    "twice": Fault(twice),
    "another-dag": Fault(another_dag),
    "another-version": Fault(another_version),
    "another-secret": Fault(another_secret),
    "strangers": Fault(strangers),
    "cut-off": Fault(cut_off, needs="namespaces"),
    "cable-flaps": Fault(cable_flaps, needs="namespaces"),
    "packets-lost": Fault(packets_lost, needs="loss"),
}
