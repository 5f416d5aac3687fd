"""Runs a command with a fault in it, and says how it ended and what it left behind."""
import contextlib
import dataclasses
import os
import pathlib
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile

shim = os.environ['FAULT_SHIM']
time_limit_s = 60
orphans_may_take_s = 5

# The layout of `struct State` in fault_shim.c.
counters = ('calls', 'forks', 'lock_calls', 'clock_reads', 'faults')
most_calls = 1 << 16
state_bytes = 4 * len(counters) + most_calls

error_texts = {'enospc': 'No space left on device', 'eio': 'Input/output error', 'erofs': 'Read-only file system',
               'edquot': 'Disk quota exceeded', 'emfile': 'Too many open files'}

# What a call of each kind may fail with (man pages of Linux), as the shim names kinds and errors.
errors_of_kind = {'o': ('enospc', 'eio', 'erofs', 'edquot', 'emfile'), 'w': ('enospc', 'eio', 'edquot'), 's': ('eio', 'enospc'),
                  't': ('eio', 'enospc'), 'c': ('eio', 'edquot'), 'l': ('enospc', 'eio', 'erofs'), 'u': ('eio', 'erofs'),
                  'm': ('enospc', 'eio', 'erofs')}
# What a caller is to try again, or to go on after: no error of the file.
survived_by_kind = {'o': ('eintr',), 'w': ('eintr', 'short'), 's': ('eintr',), 't': ('eintr',), 'c': ('eintr',)}
signals = {'kill': signal.SIGKILL, 'int': signal.SIGINT, 'term': signal.SIGTERM, 'hup': signal.SIGHUP}


@dataclasses.dataclass
class Ended:
    code: int  # negative: the signal
    out: str
    err: str
    calls: str  # a letter for each call that was counted
    forks: int
    lock_calls: int
    clock_reads: int
    faults: int
    orphans: bool  # a process was left running


def settings(kind=None, at=0, sticky=False, **more):
    """The variables that tell the shim what to do; those of other faults by name: child=2, stage='send'."""
    variables = {f'FAULT_{name.upper()}': str(value) for name, value in more.items()}
    if kind:
        variables.update(FAULT_KIND=kind, FAULT_AT=str(at))
    if sticky:
        variables['FAULT_STICKY'] = '1'
    return variables


def left_running(reader):
    """Every process of the command holds the pipe open; its last end is the end of the last of them."""
    readable, _, _ = select.select([reader], [], [], orphans_may_take_s)
    return not readable


def run(arguments, folder, fault=None, environment=None, prefix=(), after_start=None):
    """Runs `arguments` in `folder`, whose files are the ones that fail. `after_start` gets the process."""
    with tempfile.TemporaryDirectory(prefix='fault-') as private:
        state = pathlib.Path(private, 'state')
        state.write_bytes(bytes(state_bytes))
        out_path, err_path = pathlib.Path(private, 'out'), pathlib.Path(private, 'err')
        variables = {**os.environ, **(environment or {}), **(fault or {}), 'LD_PRELOAD': shim, 'FAULT_STATE': str(state),
                     'FAULT_FOLDER': str(folder)}
        reader, writer = os.pipe()
        with open(out_path, 'wb') as out, open(err_path, 'wb') as err:
            process = subprocess.Popen([*prefix, *map(str, arguments)], cwd=folder, env=variables, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err, pass_fds=(writer,))
        os.close(writer)
        try:
            if after_start:
                after_start(process)
            code = process.wait(time_limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = None
        orphans = left_running(reader)
        os.close(reader)
        raw = state.read_bytes()
        numbers = dict(zip(counters, struct.unpack_from(f'{len(counters)}I', raw)))
        calls = raw[4 * len(counters):][:numbers.pop('calls')].decode()
        return Ended(code, out_path.read_text(errors='replace'), err_path.read_text(errors='replace'), calls, orphans=orphans,
                     **numbers)


def files_in(folder):
    """All files below a folder, hidden ones too, by relative path."""
    paths = sorted(path for path in pathlib.Path(folder).rglob('*') if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@contextlib.contextmanager
def new_folder(old_files=None):
    path = pathlib.Path(tempfile.mkdtemp(prefix='reliability-'))
    for name, text in (old_files or {}).items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(text)
    try:
        yield path
    finally:
        shutil.rmtree(path)


one_sentence = re.compile(r'tandem(-run)?: [^\n]+\n')


def sentences(text):
    """The lines of standard error but for warnings and notes, which come with a good end, too."""
    lines = [line for line in text.splitlines(keepends=True) if line.strip()]
    return [line for line in lines if not re.match(r'tandem(-run)?: (warning|assumed|note)', line)]


def without_run_costs(text):
    """What a run itself costs, and when it was, differs from one run to the next."""
    text = re.sub(rb'\\?"(wall_s|peak_rss_bytes|seconds|bounding_s)\\?": ?[-+.e0-9]+', b'', text)
    return re.sub(rb'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ', b'', text)
