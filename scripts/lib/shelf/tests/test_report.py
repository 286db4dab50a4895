import datetime
import unittest

from shelf import report
from shelf.loans import Loan

MARCH = datetime.date(2026, 3, 2)


class ReportTest(unittest.TestCase):
    def test_columns_line_up(self):
        table = report.as_table([Loan("Dune", "ana", MARCH), Loan("The Trial", "bo", MARCH)], MARCH)
        self.assertEqual(
            table,
            "book       reader  due         late  fee\n"
            "Dune       ana     2026-03-23  0     0.00\n"
            "The Trial  bo      2026-03-23  0     0.00\n",
        )
