"""A loan: one book with one reader from a day until it comes back."""

import datetime
from dataclasses import dataclass

LOAN_DAYS = 21
MAX_RENEWALS = 2


class RenewalRefused(Exception):
    """The loan cannot be extended."""


@dataclass
class Loan:
    book: str
    reader: str
    taken: datetime.date
    renewals: int = 0
    returned: datetime.date | None = None

    @property
    def due_date(self):
        return self.taken + datetime.timedelta(days=LOAN_DAYS * (1 + self.renewals))

    def is_open(self):
        return self.returned is None

    def days_late(self, today):
        """Days past the due date, zero while there is time left."""
        end = self.returned or today
        return max(0, (end - self.due_date).days)

    def renew(self, today):
        if not self.is_open():
            raise RenewalRefused(f"{self.book} was returned on {self.returned}")
        if self.renewals >= MAX_RENEWALS:
            raise RenewalRefused(f"{self.book} was renewed {self.renewals} times already")
        if self.days_late(today) > 0:
            raise RenewalRefused(f"{self.book} was due on {self.due_date}")
        self.renewals += 1
        return self.due_date

    def give_back(self, today):
        if not self.is_open():
            raise ValueError(f"{self.book} was returned on {self.returned}")
        self.returned = today


def open_loans(loans, reader=None):
    return [loan for loan in loans if loan.is_open() and reader in (None, loan.reader)]


def overdue(loans, today):
    late = [loan for loan in loans if loan.is_open() and loan.days_late(today) > 0]
    return sorted(late, key=lambda loan: (loan.due_date, loan.book))
