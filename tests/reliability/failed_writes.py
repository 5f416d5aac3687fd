"""Every call by which a command writes fails in each way that it can: the command ends with one sentence that names the file,
leaves each file whole or as it was, and nothing else. What is no failure (EINTR, a short write) changes no byte."""
import concurrent.futures
import os
import random
import re
import shutil
import unittest

from commands import canonical, commands, is_whole, make_inputs, rows_of
from faults import errors_of_kind, files_in, new_folder, run, sentences, settings, signals, survived_by_kind

old_text = b'what was there before\n'
most_calls_each = int(os.environ.get('FAULT_CALLS', '0'))  # of one command that are made to fail; 0: all of them
one_fault_each = 'FAULT_ONE_EACH' in os.environ  # of a call, and not all that it may have
seed = 23
jobs = int(os.environ.get('FAULT_JOBS', '2'))


def is_journal(command, name):
    """What SQLite needs to undo a change that was cut off; the next to open the database removes it."""
    return any(name == database + '-journal' for database in command.databases)


def is_page_of_failure(name, text):
    """Where a step fails, its report says so."""
    return name.endswith('.html') and text.count(b'<!doctype') == 1 and b'"kind":"failure"' in text and is_whole(name, text)


def names_a_file(command, err):
    names = [output.rstrip('/') for output in command.outputs] + command.databases
    return any(re.search(r"['/]" + re.escape(name) + r"[/.']|'" + re.escape(name), err) for name in names)


# A file that replaces another takes a call more, and one that has a name from the beginning takes other calls.
places = ('in a new folder', 'over old files', 'without unnamed files')


def place_settings(where):
    return settings(no_unnamed_files=1) if where == 'without unnamed files' else {}


class Undisturbed:
    """What a command leaves behind where nothing fails."""

    def __init__(self, command, inputs):
        self.command, self.line = command, command.command_line(inputs)
        with new_folder() as folder:
            self.ended = run(self.line, folder)
            assert self.ended.code == 0 and self.ended.calls and not self.ended.orphans, (command.name, self.ended)
            self.files = {name: canonical(name, text) for name, text in files_in(folder).items() if name not in command.databases}
            self.rows = {name: rows_of(folder / name) for name in command.databases}
        self.calls = {where: self.calls_where(where) for where in places}
        for output in command.outputs:
            written = [name for name in self.files if name == output or output.endswith('/') and name.startswith(output)]
            assert written, (command.name, output)

    def old_files(self, where):
        """Every file that it writes, as another run may have left it; a dump wants a new folder."""
        return {name: old_text for name in self.files if not name.startswith('d/')} if where == 'over old files' else {}

    def calls_where(self, where):
        with new_folder(self.old_files(where)) as folder:
            return run(self.line, folder, place_settings(where)).calls

    def is_new(self, name, text):
        if self.command.measures:
            return name in self.files and is_whole(name, text)
        return canonical(name, text) == self.files.get(name)


class FailedWrites(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.inputs = make_inputs()
        cls.tried = 0

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.inputs)
        print(f'{cls.tried} commands run with a fault', flush=True)

    def cases(self, chosen):
        """(undisturbed, number of the call, fault, whether all calls after it fail, where)."""
        drawn = random.Random(seed)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            wholes = list(pool.map(lambda command: Undisturbed(command, self.inputs), commands))
        for whole in wholes:
            calls = [(where, *call) for where in places for call in enumerate(whole.calls[where], 1)]
            if most_calls_each and len(calls) > most_calls_each:
                calls = drawn.sample(calls, most_calls_each)
            for where, number, kind in calls:
                faults = chosen(kind, whole.command)
                for fault in drawn.sample(faults, min(1, len(faults))) if one_fault_each else faults:
                    yield whole, number, fault, drawn.random() < 0.5, where

    def for_each(self, chosen, check):
        def one(case):
            try:
                check(*case)
                return None
            except AssertionError as error:
                whole, number, fault, sticky, where = case
                return f'{whole.command.name}: {fault} {where}, at call {number} of {whole.calls[where]}, sticky {sticky}: {error}'
        cases = list(self.cases(chosen))
        type(self).tried += len(cases)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            failures = [failure for failure in pool.map(one, cases) if failure]
        self.assertEqual(failures, [], f'\n{len(failures)} of {len(cases)}:\n' + '\n'.join(failures))

    def check_folder(self, whole, folder, before, disk_is_dead=False, **what):
        """Every file is the old or the new one, and there is no other."""
        for name, text in files_in(folder).items():
            if name in whole.command.databases or is_journal(whole.command, name):
                continue
            if disk_is_dead and '/.tandem-' in '/' + name:  # which lets nothing be removed
                os.remove(folder / name)
                continue
            self.assertFalse(name.split('/')[-1].startswith('.tandem'), f'left {name}')
            self.assertTrue(text == before.get(name) or whole.is_new(name, text) or is_page_of_failure(name, text),
                            f'{name} is partial, {what}')
        missing = set(before) - set(files_in(folder))
        self.assertFalse(missing, f'lost {missing}')

    def check_rows(self, whole, folder):
        """Each row that is there is one of those that an undisturbed run makes, and the next run makes the rest."""
        for name in whole.command.databases:
            for key, row in rows_of(folder / name).items():
                self.assertEqual(row, whole.rows[name].get(key), name)

    def check_resumed(self, whole, folder):
        again = run(whole.line, folder)
        self.assertEqual(again.code, 0, again.err)
        for name in whole.command.databases:
            self.assertEqual(rows_of(folder / name), whole.rows[name])
        for name, text in files_in(folder).items():
            if name not in whole.command.databases:
                self.assertTrue(whole.is_new(name, text), f'{name} after the second run')

    def test_are_told_in_a_sentence_and_leave_nothing_half_written(self):
        def check(whole, number, fault, sticky, where):
            before = whole.old_files(where)
            with new_folder(before) as folder:
                ended = run(whole.line, folder, {**place_settings(where), **settings(fault, number, sticky)})
                self.assertFalse(ended.orphans, 'orphans')
                self.assertGreater(ended.faults, 0)
                self.check_folder(whole, folder, before, sticky and fault in ('eio', 'erofs') or whole.calls[where][number - 1] == 'u', ended=ended)
                self.check_rows(whole, folder)
                if ended.code != 0:
                    self.assertIn(ended.code, (1, 2, 3), ended)
                    self.assertEqual(len(sentences(ended.err)), 1, ended.err)
                    self.assertTrue(names_a_file(whole.command, ended.err), ended.err)
                else:  # it did without: then all is there
                    for name, text in files_in(folder).items():
                        if name not in whole.command.databases and not is_journal(whole.command, name):
                            self.assertTrue(whole.is_new(name, text), f'{name}, though all went well')
                    self.assertLessEqual(set(whole.files), set(files_in(folder)))
                self.check_resumed(whole, folder) if whole.command.databases else None
        self.for_each(lambda kind, _: errors_of_kind[kind], check)

    def test_that_are_none_change_no_byte(self):
        def check(whole, number, fault, sticky, where):
            with new_folder(whole.old_files(where)) as folder:
                # A call that is interrupted for ever never succeeds.
                ended = run(whole.line, folder, {**place_settings(where), **settings(fault, number, sticky and fault == 'short')})
                self.assertFalse(ended.orphans, 'orphans')
                self.assertEqual(ended.code, 0, ended.err)
                self.assertEqual(set(files_in(folder)), set(whole.files) | set(whole.command.databases))
                self.check_folder(whole, folder, {})
                for name in whole.command.databases:
                    self.assertEqual(rows_of(folder / name), whole.rows[name])
        # SQLite does not sync again; that no local disk of Linux asks for it is all that can be said.
        self.for_each(lambda kind, command: () if kind == 's' and command.databases else survived_by_kind.get(kind, ()), check)

    def test_cut_off_by_a_signal_leave_nothing_half_written(self):
        def check(whole, number, fault, sticky, where):
            before = whole.old_files(where)
            with new_folder(before) as folder:
                ended = run(whole.line, folder, {**place_settings(where), **settings(fault, number)})
                self.assertFalse(ended.orphans, 'orphans')
                self.assertNotEqual(ended.code, None, 'hangs')
                files = files_in(folder)
                if fault == 'kill':  # nobody can tidy up after it: for an instant the whole new file may have a hidden name
                    for name in [name for name in files if '/.tandem-' in '/' + name]:
                        os.remove(folder / name)
                self.check_folder(whole, folder, before, ended=ended)
                self.check_rows(whole, folder)
                self.check_resumed(whole, folder) if whole.command.databases else None
        self.for_each(lambda *_: tuple(signals), check)


if __name__ == '__main__':
    unittest.main()
