"""Reads and writes loans as CSV: book, reader, taken, renewals, returned."""

import csv
import datetime

from shelf.loans import Loan

COLUMNS = ["book", "reader", "taken", "renewals", "returned"]


class BadRow(Exception):
    """A line of the file is not a loan."""


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        missing = [name for name in COLUMNS if name not in (rows.fieldnames or [])]
        if missing:
            raise BadRow(f"{path}: no column {', '.join(missing)}")
        return [loan_of(row, path, number) for number, row in enumerate(rows, start=2)]


def loan_of(row, path, number):
    try:
        return Loan(
            book=row["book"],
            reader=row["reader"],
            taken=datetime.date.fromisoformat(row["taken"]),
            renewals=int(row["renewals"] or 0),
            returned=datetime.date.fromisoformat(row["returned"]) if row["returned"] else None,
        )
    except ValueError as error:
        raise BadRow(f"{path}:{number}: {error}") from error


def write(path, loans):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for loan in loans:
            writer.writerow(
                {
                    "book": loan.book,
                    "reader": loan.reader,
                    "taken": loan.taken.isoformat(),
                    "renewals": loan.renewals,
                    "returned": loan.returned.isoformat() if loan.returned else "",
                }
            )
