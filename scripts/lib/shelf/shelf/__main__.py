"""The command line: `python3 -m shelf report FILE`."""

import argparse
import datetime
import sys

from shelf import report, store


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="shelf")
    commands = parser.add_subparsers(dest="command", required=True)
    reporting = commands.add_parser("report", help="list loans and what they cost")
    reporting.add_argument("file")
    reporting.add_argument("--today", type=datetime.date.fromisoformat, default=datetime.date.today())
    options = parser.parse_args(arguments)
    loans = store.read(options.file)
    sys.stdout.write(report.as_table(loans, options.today))
    return 0


if __name__ == "__main__":
    sys.exit(main())
