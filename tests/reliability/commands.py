"""Every command that writes a file, on inputs that take an instant."""
import csv
import dataclasses
import io
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import tempfile

from faults import without_run_costs

tandem = os.environ['TANDEM']
tandem_run = os.environ.get('TANDEM_RUN', tandem + '-run')
source = pathlib.Path(__file__).resolve().parents[2]

tiny = '''\
model: tiny-llama
cluster: {preset: dgx-h100}
parallelism: {tp: 1, dp: 16}
training: {sequence: 128, global_batch: 64, precision: bf16}
'''
texts = {
    'tiny.yaml': 'name: tiny\n' + tiny,
    'host.yaml': '''\
name: host
model: {layers: 1, hidden: 32, heads: 2, ffn: 64, vocab: 64, norm: rms}
cluster: {preset: host, gpus: 2}
parallelism: {dp: 2}
training: {sequence: 16, global_batch: 2, precision: fp32, schedule: 1f1b}
''',
    'campaign.yaml': 'name: campaign\n' + tiny + 'campaign: {preset: llama3-2024, days: 1}\n',
    'search.yaml': 'name: search\n' + tiny +
                   'search: {axes: {tp: [1], pp: [1], cp: [1], zero: [1], micro_batch: [1, 2, 4], recompute: [none]}}\n',
    'study.yaml': 'scenario: tiny.yaml\ngrid: {training.micro_batch: [1, 2, 4]}\n',
    'runs.csv': (source / 'scenarios/runs/korthikanti-2022.csv').read_text(),
}


def execute(folder, *arguments):
    subprocess.run(list(map(str, arguments)), cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_inputs():
    """A folder with `texts` and what commands make of them for other commands."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix='reliability-inputs-'))
    for name, text in texts.items():
        (folder / name).write_text(text)
    execute(folder, tandem, 'simulate', 'tiny.yaml', '--json', 'a.json')
    execute(folder, tandem, 'simulate', 'tiny.yaml', '--set', 'training.micro_batch=2', '--json', 'b.json')
    execute(folder, tandem, 'lower', 'host.yaml', '--out', 'host.dag')
    execute(folder, tandem_run, 'host.dag', '--backend', 'host', '--out', 'host.timeline')
    execute(folder, tandem, 'sweep', 'study.yaml', '--out', 'study.sqlite')
    execute(folder, tandem, 'export', 'host.yaml', '--to', 'chakra', '--out', 'chakra')
    return folder


@dataclasses.dataclass
class Command:
    name: str
    arguments: list  # IN/ stands for the folder of the inputs; files are written into the current one
    outputs: list    # files, or folders with a slash at the end
    databases: list = dataclasses.field(default_factory=list)
    measures: bool = False  # its results are those of a clock
    program: str = tandem

    def command_line(self, inputs):
        return [self.program] + [argument.replace('IN/', f'{inputs}/') for argument in self.arguments]


def _command(name, words, outputs, **more):
    return Command(name, words.split(), outputs.split(), **more)


commands = [
    _command('simulate', 'simulate IN/tiny.yaml --json r.json --trace t.pftrace --report p.html', 'r.json t.pftrace p.html'),
    _command('simulate-chrome', 'simulate IN/host.yaml --trace t.json', 't.json'),
    _command('simulate-kineto', 'simulate IN/host.yaml --trace t/', 't/'),
    _command('lower', 'lower IN/host.yaml --out s.dag', 's.dag'),
    _command('lower-folded', 'lower IN/tiny.yaml --folded --out s.dag', 's.dag'),
    _command('execute', 'execute IN/host.yaml --backend host --json r.json --trace t.pftrace --report p.html --dump d',
             'r.json t.pftrace p.html d/', measures=True),
    _command('crosscheck', 'crosscheck IN/host.yaml --backend host --json r.json --trace t.json --report p.html',
             'r.json t.json p.html', measures=True),
    _command('crosscheck-measured', 'crosscheck IN/host.yaml --measured IN/host.timeline --json r.json --report p.html',
             'r.json p.html'),
    _command('calibrate', 'calibrate --backend host --budget 0.1 --out host.profile', 'host.profile host.profile.yaml',
             measures=True),
    _command('calibrate-runs', 'calibrate --runs IN/runs.csv --out site.profile', 'site.profile site.profile.yaml'),
    _command('search', 'search IN/search.yaml --json r.json --out s.sqlite --report p.html --write best', 'r.json p.html best/',
             databases=['s.sqlite']),
    _command('place', 'place IN/tiny.yaml --moves 20 --json r.json --out p.yaml', 'r.json p.yaml', databases=['p.sqlite']),
    _command('sweep', 'sweep IN/study.yaml --out s.sqlite --csv s.csv --report p.html --jobs 1', 's.csv p.html',
             databases=['s.sqlite']),
    _command('campaign', 'campaign IN/campaign.yaml --json r.json', 'r.json'),
    _command('lint', 'lint IN/tiny.yaml --json r.json --markdown r.md', 'r.json r.md'),
    _command('validate', 'validate IN/runs.csv --json r.json --csv r.csv --report p.html', 'r.json r.csv p.html'),
    _command('topology', 'topology IN/tiny.yaml --json r.json', 'r.json'),
    _command('export', 'export IN/tiny.yaml --to megatron --out x.sh', 'x.sh'),
    _command('export-chakra', 'export IN/host.yaml --to chakra --out c', 'c/'),
    _command('import', 'import --from chakra IN/chakra --out i.yaml --json r.json', 'i.yaml r.json'),
    _command('diff', 'diff IN/a.json IN/b.json --json r.json --report p.html --markdown r.md', 'r.json p.html r.md'),
    _command('report', 'report IN/a.json --out p.html', 'p.html'),
    _command('report-study', 'report IN/study.sqlite --out p.html', 'p.html'),
    _command('tandem-run', 'IN/host.dag --backend host --out m.timeline --trace t.json', 'm.timeline t.json', measures=True,
             program=tandem_run),
]


def rows_of(database):
    """The rows of a database by their key, without what a run costs. SQLite undoes what a dead writer left half done."""
    if not pathlib.Path(database).exists():
        return {}
    with sqlite3.connect(database) as connection:
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda text: text.decode(errors='replace')
        assert connection.execute('PRAGMA integrity_check').fetchone()[0] == 'ok', database
        rows = {}
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                cells = {key: row[key] for key in row.keys() if key not in run_costs}
                rows[table, row[0]] = {key: without_run_costs(cell.encode()) if isinstance(cell, str) else cell
                                       for key, cell in cells.items()}
    connection.close()
    return rows


run_costs = ('started', 'seconds', 'run.wall_s', 'run.peak_rss_bytes', 'digest')  # the digest is that of the others, too


def canonical(name, text):
    """A file without what a run itself costs."""
    if name.endswith('.profile'):  # begins with a digest, which the date changes
        text = re.sub(rb'^(\x0a\x0etandem-profile\x10.\x1d)....', rb'\1', text, flags=re.DOTALL)
    if not name.endswith('.csv'):
        return without_run_costs(text)
    rows = list(csv.DictReader(io.StringIO(text.decode())))
    return [{column: cell for column, cell in row.items() if column not in run_costs} for row in rows]


def is_whole(name, text):
    """Whether a file that a clock wrote is all there, as far as its form says it."""
    if name.endswith('.json'):
        json.loads(text)
    if name.endswith('.html'):
        return text.rstrip().endswith(b'</html>')
    return len(text) > 0
