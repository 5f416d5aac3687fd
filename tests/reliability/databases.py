"""Databases of results that somebody else writes, that are older, damaged, or on a file system without locks: no row is
lost, none is made up, and what is wrong is said in one sentence. And clocks that jump, which change no result."""
import os
import random
import shutil
import sqlite3
import threading
import time
import unittest

from commands import canonical, commands, make_inputs, rows_of, tandem
from failed_writes import Undisturbed, seed
from faults import files_in, new_folder, run, sentences, settings

flips = int(os.environ.get('FAULT_FLIPS', '150'))  # databases with damaged bytes
sweeps_at_once = 3


class Databases(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.inputs = make_inputs()
        cls.with_database = {command.name: Undisturbed(command, cls.inputs) for command in commands if command.databases}
        cls.sweep = cls.with_database['sweep']

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.inputs)

    def test_of_several_sweeps_at_once_have_every_row_once(self):
        for attempt in range(5):
            with self.subTest(attempt=attempt), new_folder() as folder:
                line = [tandem, 'sweep', f'{self.inputs}/study.yaml', '--out', 's.sqlite', '--jobs', '2']
                ended = [None] * sweeps_at_once

                def start(i):
                    ended[i] = run(line, folder)
                threads = [threading.Thread(target=start, args=(i,)) for i in range(sweeps_at_once)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual([one.code for one in ended], [0] * sweeps_at_once, [one.err for one in ended])
                self.assertEqual(rows_of(folder / 's.sqlite'), self.sweep.rows['s.sqlite'])

    def test_that_lost_a_killed_writer_beside_another_are_completed(self):
        with new_folder() as folder:
            line = self.sweep.line
            killer = threading.Thread(target=lambda: run(line, folder, settings('kill', 40)))
            killer.start()
            other = run(line, folder)
            killer.join()
            self.assertEqual(other.code, 0, other.err)
            self.assertEqual(rows_of(folder / 's.sqlite'), self.sweep.rows['s.sqlite'])

    def test_of_a_file_system_without_locks_are_refused_at_once(self):
        for name, whole in self.with_database.items():
            for locks in ('enolck', 'eacces'):
                with self.subTest(command=name, locks=locks), new_folder() as folder:
                    began = time.monotonic()
                    ended = run(whole.line, folder, settings(locks=locks))
                    self.assertGreater(ended.lock_calls, 0)
                    self.assertEqual(ended.code, 1, ended)
                    self.assertEqual(len(sentences(ended.err)), 1, ended.err)
                    self.assertRegex(ended.err, r"'[sp].sqlite'.*lock")
                    self.assertLess(time.monotonic() - began, 60)  # and not the minutes for which it waits for other writers
                    self.assertFalse([path for path in files_in(folder) if not path.endswith('.sqlite')])

    def change(self, folder, statements):
        with sqlite3.connect(folder / 's.sqlite') as connection:
            connection.executescript(statements)
        connection.close()

    def test_of_an_older_version_get_the_columns_that_they_lack_and_keep_their_rows(self):
        with new_folder() as folder:
            self.assertEqual(run(self.sweep.line, folder).code, 0)
            # As a version would have left it that wrote fewer keys of the result, and only one of the points.
            columns = [row[1] for row in sqlite3.connect(folder / 's.sqlite').execute('PRAGMA table_info(points)')]
            dropped = [column for column in columns if column.startswith(('memory.', 'bounds_s.', 'interval'))]
            self.assertTrue(dropped)
            self.change(folder, "UPDATE points SET tandem = '0.0.1'; DELETE FROM points WHERE point > 0;" +
                       ''.join(f'ALTER TABLE points DROP COLUMN "{column}";' for column in dropped))
            before = rows_of(folder / 's.sqlite')
            ended = run(self.sweep.line, folder)
            self.assertEqual(ended.code, 0, ended.err)
            self.assertIn('1 of them from before', ended.out)
            after, whole = rows_of(folder / 's.sqlite'), self.sweep.rows['s.sqlite']
            self.assertEqual(set(after), set(whole))
            for key, row in after.items():
                if key in before:
                    self.assertEqual({column: row[column] for column in before[key]}, before[key])
                else:
                    self.assertEqual({column: row[column] for column in whole[key]}, whole[key])

    def test_that_are_something_else_are_refused_and_left_as_they_are(self):
        def foreign(folder):
            self.change(folder, 'CREATE TABLE points (id INTEGER)')
        files = {'a text': lambda folder: (folder / 's.sqlite').write_text('no database\n' * 100),
                 'a table of that name': foreign,
                 'a folder': lambda folder: (folder / 's.sqlite').mkdir()}
        for what, make in files.items():
            with self.subTest(what=what), new_folder() as folder:
                make(folder)
                before = files_in(folder)
                ended = run(self.sweep.line, folder)
                self.assertEqual(ended.code, 1, ended)
                self.assertEqual(len(sentences(ended.err)), 1, ended.err)
                self.assertIn("s.sqlite'", ended.err)
                self.assertEqual(files_in(folder), before)

    def test_with_damaged_bytes_are_refused_or_give_the_right_rows(self):
        with new_folder() as folder:
            self.assertEqual(run(self.sweep.line, folder).code, 0)
            whole = (folder / 's.sqlite').read_bytes()
        drawn = random.Random(seed)
        whole_rows = self.sweep.files['s.csv']
        refused = 0
        for attempt in range(flips):
            damaged = bytearray(whole)
            for _ in range(drawn.choice((1, 1, 4, 64))):
                damaged[drawn.randrange(len(damaged))] ^= 1 << drawn.randrange(8)
            if attempt % 10 == 9:
                damaged = damaged[:drawn.randrange(len(damaged))]
            with self.subTest(attempt=attempt), new_folder({'s.sqlite': bytes(damaged)}) as folder:
                ended = run(self.sweep.line, folder)
                self.assertIn(ended.code, (0, 1, 2), ended)
                self.assertFalse(ended.orphans)
                if ended.code != 0:
                    refused += 1
                    self.assertEqual(len(sentences(ended.err)), 1, ended.err)
                    self.assertIn("s.sqlite", ended.err)
                    continue
                # A damaged name of a column is one more, which is empty; values are the right ones.
                rows = canonical('s.csv', (folder / 's.csv').read_bytes())
                self.assertEqual(len(rows), len(whole_rows))
                for row, right in zip(rows, whole_rows):
                    self.assertEqual({column: row.get(column) for column in right}, right, 'a damaged row passed for a result')
        self.assertGreater(refused, 0)

    def test_do_not_mind_a_clock_that_jumps(self):
        for name, whole in self.with_database.items():
            for jump in (-3e8, -3600, 3600, 3e9):
                for read in (1, 3):
                    with self.subTest(command=name, jump=jump, read=read), new_folder() as folder:
                        ended = run(whole.line, folder, settings(clock_at=read, clock_jump=jump))
                        self.assertEqual(ended.code, 0, ended.err)
                        self.assertEqual(ended.faults > 0, ended.clock_reads >= read)
                        for database in whole.command.databases:
                            self.assertEqual(rows_of(folder / database), whole.rows[database])
                        for file, text in files_in(folder).items():
                            self.assertTrue(file in whole.command.databases or whole.is_new(file, text), file)


if __name__ == '__main__':
    unittest.main()
