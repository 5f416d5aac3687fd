"""Simulations run in children. Each is killed at every stage of its life, or cannot be started: the command says so in one sentence,
leaves no file and no process; a study keeps the other rows, and its next run makes the row that is missing, with the same bytes."""
import os
import re
import shutil
import unittest

from commands import commands, make_inputs, rows_of, tandem
from failed_writes import Undisturbed, is_page_of_failure
from faults import files_in, new_folder, run, sentences, settings

stages = ('refuse', 'fork', 'prctl', 'cpu:0.000001', 'cpu:0.002', 'cpu:0.01', 'send', 'half', 'exit')


class KilledChildren(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.inputs = make_inputs()
        asked = os.environ.get('FAULT_COMMAND')  # all without it
        cls.wholes = [Undisturbed(command, cls.inputs) for command in commands if asked in (None, command.name)]
        cls.tried = 0

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.inputs)
        print(f'{cls.tried} commands run with a child killed', flush=True)

    def check(self, whole, folder, ended):
        self.assertFalse(ended.orphans, 'orphans')
        self.assertIn(ended.code, (0, 1), ended)  # killed after it has sent all, a child may have done its work
        self.assertLessEqual(len(sentences(ended.err)), 1, ended.err)
        if ended.code == 1:
            self.assertRegex(ended.err + ended.out, 'killed by signal 9|cannot start a simulation process|(point|plan)s? failed', ended)
            for name, text in files_in(folder).items():
                is_whole = whole.command.databases or is_page_of_failure(name, text)
                self.assertTrue(is_whole or name in ended.out, f'left {name}')
        for name in whole.command.databases:
            for key, row in rows_of(folder / name).items():
                if row.get('status') != b'failed':
                    self.assertEqual(row, whole.rows[name].get(key))
        again = run(whole.line, folder)
        self.assertEqual(again.code, 0, again.err)
        for name in whole.command.databases:
            self.assertEqual(rows_of(folder / name), whole.rows[name])
        for name, text in files_in(folder).items():
            if name not in whole.command.databases:
                self.assertTrue(whole.is_new(name, text), name)

    def test_end_in_a_sentence_and_leave_nothing(self):
        faults = 0
        for whole in self.wholes:
            forks = whole.ended.forks
            for child in sorted({min(1, forks), min(2, forks), forks} - {0}):
                for stage in stages:
                    with self.subTest(command=whole.command.name, child=child, stage=stage), new_folder() as folder:
                        ended = run(whole.line, folder, settings(child=child, stage=stage))
                        type(self).tried += 1
                        faults += ended.faults
                        self.check(whole, folder, ended)
        self.assertGreater(faults, 3 * len(self.wholes))

    def test_of_a_study_lose_their_own_row_alone(self):
        whole = next(whole for whole in self.wholes if whole.command.name == 'sweep')
        for stage in ('fork', 'send', 'half'):
            with self.subTest(stage=stage), new_folder() as folder:
                ended = run(whole.line, folder, settings(child=2, stage=stage))  # of the server that the first one is
                self.assertEqual(ended.code, 1)
                self.assertRegex(ended.err, r'1 of 3 points failed; the same command tries them again')
                states = [row['status'] for row in rows_of(folder / 's.sqlite').values()]
                self.assertEqual(sorted(state.decode() for state in states), ['done', 'done', 'failed'])


if __name__ == '__main__':
    unittest.main()
