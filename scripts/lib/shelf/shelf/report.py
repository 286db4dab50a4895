"""Writes loans as a table for people."""

from shelf import fees

HEAD = ("book", "reader", "due", "late", "fee")


def rows(loans, today):
    for loan in sorted(loans, key=lambda loan: (loan.due_date, loan.book)):
        yield (
            loan.book,
            loan.reader,
            loan.due_date.isoformat(),
            str(loan.days_late(today)),
            fees.money(fees.fee(loan, today)),
        )


def as_table(loans, today):
    lines = [HEAD, *rows(loans, today)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    text = ""
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths)]
        text += "  ".join(cells).rstrip() + "\n"
    return text
