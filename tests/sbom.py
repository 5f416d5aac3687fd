"""What cmake/sbom.py writes has the fields that CycloneDX 1.5 requires, and names every library that the programs load and every npm
package that the report's page is built of."""
import json
import pathlib
import re
import subprocess
import sys
import unittest

source = pathlib.Path(__file__).resolve().parents[1]
programs = sys.argv[1:]


class Sbom(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = subprocess.run([source / 'cmake/sbom.py', *programs], check=True, capture_output=True, text=True).stdout
        cls.bill = json.loads(cls.text)
        cls.components = cls.bill['components']

    def test_has_the_required_fields(self):
        self.assertEqual((self.bill['bomFormat'], self.bill['specVersion'], self.bill['version']), ('CycloneDX', '1.5', 1))
        references = [component['bom-ref'] for component in self.components]
        self.assertEqual(len(references), len(set(references)))
        for component in self.components:
            self.assertEqual(component['type'], 'library')
            self.assertIn(component['scope'], ('required', 'excluded'))
            self.assertRegex(component['purl'], r'^pkg:(deb/debian|npm)/[^@]+@.+')
            for field in ('name', 'version'):
                self.assertTrue(component[field], component)
            self.assertTrue(component['licenses'], component)
            for licence in component['licenses']:
                self.assertEqual(len(licence), 1)
                self.assertTrue(licence.get('expression') or licence['license']['name'], component)
        self.assertLessEqual(set(self.bill['dependencies'][0]['dependsOn']), set(references))

    def test_names_every_library_that_is_loaded(self):
        named = {component['name'] for component in self.components}
        for program in programs:
            for line in subprocess.run(['ldd', program], check=True, capture_output=True, text=True).stdout.splitlines():
                path = re.search(r'(/\S+) \(0x', line)
                if path is None:
                    continue  # linux-vdso, which the kernel brings
                # By the lists of dpkg's own data base, which is not how sbom.py asks.
                real = str(pathlib.Path(path.group(1)).resolve())
                if real.endswith('/tandem_without_ns3.so'):
                    continue  # our own
                owners = {listing.name.split(':')[0].removesuffix('.list')
                          for listing in pathlib.Path('/var/lib/dpkg/info').glob('lib*.list')
                          if {real, real.removeprefix('/usr')} & set(listing.read_text().splitlines())}
                owners |= {'zlib1g'} if '/libz.so' in real else set()
                self.assertTrue(owners & named, real)

    def test_names_every_npm_package_and_says_which_are_shipped(self):
        lock = json.loads((source / 'viz/package-lock.json').read_text())['packages']
        named = {(component['name'], component['version']): component for component in self.components}
        for path, package in lock.items():
            if path:
                self.assertIn((path.split('node_modules/')[-1], package['version']), named)
        shipped = {name for (name, _), component in named.items() if component['scope'] == 'required' and 'npm' in component['purl']}
        self.assertLessEqual({'d3-scale', 'd3-shape', 'd3-array'}, shipped)
        self.assertFalse({'vite', 'typescript', 'playwright-core', 'speedscope'} & shipped)

    def test_is_the_same_every_time(self):
        again = subprocess.run([source / 'cmake/sbom.py', *programs], check=True, capture_output=True, text=True).stdout
        self.assertEqual(again, self.text)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
