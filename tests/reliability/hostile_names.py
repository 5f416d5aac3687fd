"""Names that would be scripts: in pages they stay text, and other formats give them back as they were."""
import csv
import html.parser
import io
import json
import shutil
import unittest

from commands import make_inputs, tandem, tiny
from faults import new_folder, run

hostile = '</script><script>window.ran = 1</script><!--<img src=x: onerror=\'window.ran = 2\'>]]> & "quoted" \\u003c'
scenario = f'''\
name: {json.dumps(hostile)}
model: {{preset: tiny-llama, name: {json.dumps(hostile)}}}
cluster: {{preset: dgx-h100, name: {json.dumps(hostile)}, gpu: {{preset: h100-sxm-80gb, name: {json.dumps(hostile)}}}}}
''' + ''.join(tiny.splitlines(keepends=True)[2:])


class Elements(html.parser.HTMLParser):
    """The elements of a page, as a browser finds them."""

    def __init__(self, page):
        super().__init__()
        self.names = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.names.append((tag, sorted(name for name, _ in attributes)))


def data_in(page):
    opening = '<script type="application/json" id="report">'
    data = page[page.index(opening) + len(opening):]
    return data[:data.index('</script>')]


def strings_of(tree):
    if isinstance(tree, str):
        yield tree
    for child in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from strings_of(child)


class HostileNames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.inputs = make_inputs()
        (cls.inputs / 'hostile.yaml').write_text(scenario)
        (cls.inputs / 'study.yaml').write_text(f'name: {json.dumps(hostile)}\nscenario: hostile.yaml\ngrid: {{training.micro_batch: [1, 2]}}\n')
        (cls.inputs / 'search.yaml').write_text(
            scenario + 'search: {axes: {tp: [1], pp: [1], cp: [1], zero: [1], micro_batch: [1, 2], recompute: [none]}}\n')
        (cls.inputs / 'host.yaml').write_text((cls.inputs / 'host.yaml').read_text().replace('name: host', f'name: {json.dumps(hostile)}'))
        rows = list(csv.reader(io.StringIO((cls.inputs / 'runs.csv').read_text())))
        rows[1][rows[0].index('id')] = rows[1][rows[0].index('source')] = hostile
        with (cls.inputs / 'runs.csv').open('w') as file:
            csv.writer(file).writerows(rows)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.inputs)

    def run_all(self, folder, *lines):
        for line in lines:
            ended = run([tandem, *line.replace('IN/', f'{self.inputs}/').split()], folder)
            self.assertEqual(ended.code, 0, (line, ended.err))

    def test_stay_text_in_every_page(self):
        with new_folder() as folder:
            self.run_all(folder, 'simulate IN/hostile.yaml --json <script>.json --report step.html',
                         'simulate IN/hostile.yaml --set training.micro_batch=2 --json b.json', 'diff <script>.json b.json --report diff.html',
                         'crosscheck IN/host.yaml --measured IN/host.timeline --report crosscheck.html',
                         'execute IN/host.yaml --backend host --report executed.html',
                         'sweep IN/study.yaml --out s.sqlite --report study.html', 'search IN/search.yaml --out q.sqlite --report search.html',
                         'validate IN/runs.csv --report validation.html', 'report <script>.json --out result.html', 'report s.sqlite --out file.html')
            plain = run([tandem, 'simulate', self.inputs / 'tiny.yaml', '--report', 'plain.html'], folder)
            self.assertEqual(plain.code, 0)
            elements = Elements((folder / 'plain.html').read_text()).names
            self.assertEqual([name for name, _ in elements].count('script'), 2)
            pages = [path for path in folder.glob('*.html') if path.name != 'plain.html']
            self.assertEqual(len(pages), 9)
            for path in pages:
                page = path.read_text()
                with self.subTest(page=path.name):
                    self.assertEqual(Elements(page).names, elements)
                    self.assertNotIn('<!--', data_in(page))  # after which a browser sees no end of the data
                    name = '<script>.json' if path.name == 'diff.html' else hostile
                    self.assertTrue(any(name in text for text in strings_of(json.loads(data_in(page)))), 'the name is not in the page')
                    self.assertRegex(page, r'http-equiv="Content-Security-Policy" content="default-src \'none\'; script-src \'sha256-')

    def test_come_back_from_every_other_format(self):
        with new_folder() as folder:
            self.run_all(folder, 'simulate IN/hostile.yaml --json a.json --trace t.json', 'sweep IN/study.yaml --out s.sqlite --csv s.csv',
                         'validate IN/runs.csv --json v.json --csv v.csv', 'export IN/hostile.yaml --to scenario --out e.yaml',
                         'simulate e.yaml --json again.json')
            self.assertEqual(json.loads((folder / 'a.json').read_text())['scenario'], hostile)
            self.assertEqual(json.loads((folder / 'again.json').read_text())['scenario'], hostile)
            json.loads((folder / 't.json').read_text())
            rows = list(csv.DictReader(io.StringIO((folder / 's.csv').read_text())))
            self.assertEqual([row['scenario'] for row in rows], [hostile] * 2)
            self.assertEqual(next(csv.DictReader(io.StringIO((folder / 'v.csv').read_text())))['id'], hostile)


if __name__ == '__main__':
    unittest.main()
