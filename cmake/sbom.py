#!/usr/bin/env python3
"""Writes what Tandem's programs are made of, as a bill of materials in CycloneDX 1.5 (JSON): the Debian libraries that they load or
were compiled with, and the npm packages of the report's page and of the tools that build it.

    cmake/sbom.py PROGRAM... >tandem.cdx.json

Versions and licences are those of this machine (dpkg) and of viz/package-lock.json. The same inputs give the same bytes: there is
neither a date nor a serial number in it."""
import json
import pathlib
import re
import subprocess
import sys

source = pathlib.Path(__file__).resolve().parent.parent
tools = {'g++', 'cmake', 'ninja-build', 'pkg-config', 'ccache', 'protobuf-compiler'}  # which leave nothing of theirs behind


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env={'LC_ALL': 'C', 'PATH': '/usr/bin:/bin'}).stdout


def loaded_by(program):
    """The files of the shared libraries that the loader finds for a program, but for what was built with it."""
    paths = re.findall(r'(?:=> |^\s+)(/\S+) \(0x', output_of('ldd', program), flags=re.MULTILINE)
    found = {pathlib.Path(path).resolve() for path in paths}
    return {str(path) for path in found if not path.is_relative_to(pathlib.Path(program).resolve().parent)}


def opened_by_programs():
    """The library of BLAS, which the loader does not know of: runtime/host opens it."""
    paths = re.findall(r'^\s+libopenblas\.so\.0 .* => (\S+)$', output_of('/sbin/ldconfig', '-p'), re.MULTILINE)
    return {str(pathlib.Path(paths[0]).resolve())} if paths else set()


def packages_of(paths):
    """The Debian packages of files. dpkg knows some paths from before /lib became /usr/lib."""
    asked = [name for path in paths for name in (path, path.removeprefix('/usr'))]
    lines = subprocess.run(['dpkg', '-S', *asked], capture_output=True, text=True).stdout.splitlines()
    owners = {}
    for line in lines:
        owner, path = line.split(': ', 1)
        owners[path] = owner.split(',')[0].split(':')[0]
    for path in paths:
        if path not in owners and path.removeprefix('/usr') not in owners:
            sys.exit(f'sbom.py: no Debian package has {path}')
    return set(owners.values())


def compiled_in():
    """The development packages that ./dev installs, of which headers and static parts are in the programs."""
    listed = re.search(r'^packages=\((.*?)\)', (source / 'dev').read_text(), re.MULTILINE | re.DOTALL).group(1).split()
    return [package for package in listed if package not in tools]


def licences_of(package):
    """The short names of a package's machine-readable copyright file (DEP 5), in order; or what says that there is none."""
    text = pathlib.Path('/usr/share/doc', package, 'copyright').read_text(errors='replace')
    names = re.findall(r'^License:[ \t]*(\S.*)$', text, re.MULTILINE)
    return sorted(set(name.strip() for name in names)) or ['see the copyright file of the Debian package']


def debian_component(package, use):
    version, source_name, architecture = output_of('dpkg-query', '--show', '--showformat=${Version}\t${source:Package}\t${Architecture}',
                                                   package).split('\t')
    url = f'pkg:deb/debian/{package}@{version}?arch={architecture}'
    return {'type': 'library', 'bom-ref': url, 'name': package, 'version': version, 'purl': url, 'scope': 'required',
            'licenses': [{'license': {'name': name}} for name in licences_of(package)],
            'properties': [{'name': 'tandem:use', 'value': use}, {'name': 'debian:source', 'value': source_name}]}


def debian_components(programs):
    loaded = packages_of(sorted(opened_by_programs().union(*map(loaded_by, programs))))
    made = set(compiled_in()) - loaded
    return [debian_component(name, 'loaded at run time') for name in sorted(loaded)] + [
        debian_component(name, 'compiled in') for name in sorted(made)]


def imported_by_the_page():
    """The npm packages that the sources of the page import."""
    names = set()
    for path in (source / 'viz/src').rglob('*.ts'):
        for name in re.findall(r'''from ["']([^."'][^"']*)["']''', path.read_text()):
            names.add('/'.join(name.split('/')[:2 if name.startswith('@') else 1]))
    return names


def with_dependencies(names, packages):
    found, waiting = set(), sorted(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        waiting += packages[f'node_modules/{name}'].get('dependencies', {})
    return found


def npm_components():
    packages = json.loads((source / 'viz/package-lock.json').read_text())['packages']
    shipped = with_dependencies(imported_by_the_page(), packages)
    components = []
    for path, package in sorted(packages.items()):
        if not path:
            continue
        name = path.split('node_modules/')[-1]
        url = f'pkg:npm/{name.replace("@", "%40")}@{package["version"]}'
        algorithm, digest = package['integrity'].split('-', 1)
        is_shipped = path == f'node_modules/{name}' and name in shipped
        components.append({
            'type': 'library', 'bom-ref': url, 'name': name, 'version': package['version'], 'purl': url,
            'scope': 'required' if is_shipped else 'excluded', 'licenses': [licence_of(package.get('license'))],
            'properties': [{'name': 'tandem:use', 'value': "in the report's page" if is_shipped else "builds or tests the report's page"},
                           {'name': 'npm:integrity', 'value': f'{algorithm}-{digest}'}]})
    return list({component['bom-ref']: component for component in components}.values())


def licence_of(licence):
    if licence is None:
        return {'license': {'name': 'see the package'}}
    return {'expression': licence} if ' ' in licence else {'license': {'name': licence}}


def version():
    return re.search(r'project\(tandem VERSION (\S+)', (source / 'CMakeLists.txt').read_text()).group(1)


def main():
    programs = sys.argv[1:] or sys.exit('usage: cmake/sbom.py PROGRAM...')
    components = debian_components(programs) + npm_components()
    bill = {'bomFormat': 'CycloneDX', 'specVersion': '1.5', 'version': 1,
            'metadata': {'component': {'type': 'application', 'bom-ref': 'tandem', 'name': 'tandem', 'version': version(),
                                       'licenses': [{'license': {'id': 'Apache-2.0'}}]}},
            'components': components,
            'dependencies': [{'ref': 'tandem', 'dependsOn': [c['bom-ref'] for c in components if c['scope'] == 'required']}]}
    print(json.dumps(bill, indent=1))


main()
