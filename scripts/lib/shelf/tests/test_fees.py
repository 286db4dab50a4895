import datetime
import unittest

from shelf import fees
from shelf.loans import Loan

MARCH = datetime.date(2026, 3, 2)


def day(number):
    return MARCH + datetime.timedelta(days=number)


class FeeTest(unittest.TestCase):
    def test_nothing_is_owed_before_the_due_date(self):
        self.assertEqual(fees.fee(Loan("Dune", "ana", MARCH), day(21)), 0)

    def test_both_grace_days_are_free(self):
        self.assertEqual(fees.fee_for_days(2), 0)

    def test_grace_days_are_not_charged_afterwards(self):
        self.assertEqual(fees.fee_for_days(5), 75)

    def test_a_fee_never_exceeds_the_cap(self):
        self.assertEqual(fees.fee_for_days(400), 1500)

    def test_staff_never_pays(self):
        self.assertEqual(fees.fee(Loan("Dune", "ana", MARCH), day(60), "staff"), 0)

    def test_readers_who_owe_nothing_are_left_out(self):
        loans = [Loan("Dune", "ana", MARCH), Loan("Emma", "bo", day(30))]
        self.assertEqual(fees.total(loans, day(26)), {"ana": 75})

    def test_money_has_two_decimals(self):
        self.assertEqual(fees.money(1505), "15.05")
