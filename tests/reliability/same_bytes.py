"""What a simulation says depends on its input alone: not on how many jobs or cores compute it, the locale, the time zone, where memory
lies, or how many threads libraries would like."""
import os
import random
import shutil
import unittest

from commands import canonical, commands, make_inputs, rows_of, tandem
from failed_writes import Undisturbed, seed
from faults import files_in, new_folder, run

settings_each = int(os.environ.get('FAULT_SETTINGS', '24'))  # for each command
with_jobs = ('search', 'place', 'sweep', 'campaign', 'validate')
scenarios = ('llama3-70b-512', 'mixtral-8x7b-64')  # besides the tiny ones, where there is time for them

locales = ('C', 'POSIX', 'C.UTF-8', 'de_DE.UTF-8', 'tr_TR.UTF-8', 'fa_IR', 'no_SUCH.locale', '')
zones = ('UTC', 'America/St_Johns', 'Asia/Kathmandu', 'Pacific/Chatham', 'XYZ-24', ':/no/such/zone', '')
thread_counts = ('1', '2', '7', '64')


def drawn_setting(drawn, command):
    """(variables, what runs the command, arguments)."""
    environment = {'LC_ALL': drawn.choice(locales), 'TZ': drawn.choice(zones), 'OMP_NUM_THREADS': drawn.choice(thread_counts),
                   'OPENBLAS_NUM_THREADS': drawn.choice(thread_counts), 'MALLOC_PERTURB_': str(drawn.randrange(256)),
                   'COLUMNS': str(drawn.choice((20, 80, 300)))}
    prefix = []
    if drawn.random() < 0.5:
        prefix += ['setarch', os.uname().machine, '--addr-no-randomize']
    cores = sorted(os.sched_getaffinity(0))
    if drawn.random() < 0.5:
        prefix += ['taskset', '--cpu-list', str(drawn.choice(cores))]
    jobs = ['--jobs', str(drawn.choice((1, 2, 3, 16)))] if command in with_jobs else []
    return environment, prefix, jobs


class SameBytes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.inputs = make_inputs()
        cls.tried = 0

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.inputs)
        print(f'{cls.tried} runs compared', flush=True)

    def is_allowed(self, prefix, folder):
        return run([*prefix, 'true'], folder).code == 0

    def test_of_every_command(self):
        drawn = random.Random(seed)
        for command in commands:
            if command.measures:
                continue
            # Pages state the command line, jobs and all.
            command.arguments = [word for word in command.arguments if word not in ('--jobs', '1')]
            whole = Undisturbed(command, self.inputs)
            for _ in range(settings_each):
                environment, prefix, jobs = drawn_setting(drawn, command.name)
                with self.subTest(command=command.name, environment=environment, prefix=prefix, jobs=jobs), new_folder() as folder:
                    if not self.is_allowed(prefix, folder):  # a container may forbid it
                        prefix = []
                    ended = run(whole.line + jobs, folder, environment=environment, prefix=prefix)
                    type(self).tried += 1
                    self.assertEqual(ended.code, 0, ended.err)
                    for name in command.databases:
                        self.assertEqual(rows_of(folder / name), whole.rows[name])
                    for name, text in files_in(folder).items():
                        if name not in command.databases:
                            told = ' '.join(jobs).encode()
                            text = text.replace(b' ' + told, b'') if jobs else text
                            self.assertEqual(canonical(name, text) == whole.files[name], True, name)
                    if not jobs:
                        self.assertEqual(out_of(ended), out_of(whole.ended))

    @unittest.skipIf(settings_each < 8, 'left to the slow suite')
    def test_of_shipped_scenarios(self):
        from commands import source
        drawn = random.Random(seed)
        for scenario in scenarios:
            first = None
            for _ in range(4):
                environment, prefix, _ = drawn_setting(drawn, 'simulate')
                with self.subTest(scenario=scenario, environment=environment, prefix=prefix), new_folder() as folder:
                    if not self.is_allowed(prefix, folder):
                        prefix = []
                    ended = run([tandem, 'simulate', source / f'scenarios/{scenario}.yaml', '--json', 'r.json', '--trace', 't.pftrace'],
                                folder, environment=environment, prefix=prefix)
                    type(self).tried += 1
                    self.assertEqual(ended.code, 0, ended.err)
                    files = {name: canonical(name, text) for name, text in files_in(folder).items()}
                    first = first or files
                    self.assertEqual(files == first, True)


def out_of(ended):
    """Standard output without what tells of times of this machine."""
    return [line for line in ended.out.splitlines() if ' in ' not in line and 'simulated by' not in line and 'wall' not in line]


if __name__ == '__main__':
    unittest.main()
