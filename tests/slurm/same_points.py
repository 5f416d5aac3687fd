"""same_points.py DATABASE: prints the points of a sweep or a search as text, without what differs from run to run: when a point
was simulated, how long that took, and what the process needed. Two runs that did the same print the same."""

import json
import sqlite3
import sys


def main() -> None:
    connection = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    for row in connection.execute("SELECT * FROM points ORDER BY study, point, hash"):
        cells = {name: row[name] for name in row.keys() if name not in ("started", "seconds", "digest") and not name.startswith("run.")}
        result = json.loads(cells["json"] or "{}")
        result.pop("run", None)
        cells["json"] = json.dumps(result)
        print(json.dumps(cells, sort_keys=True))


main()
