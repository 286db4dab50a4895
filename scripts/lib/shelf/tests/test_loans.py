import datetime
import unittest

from shelf.loans import Loan, RenewalRefused, open_loans, overdue

MARCH = datetime.date(2026, 3, 2)


def day(number):
    return MARCH + datetime.timedelta(days=number)


class LoanTest(unittest.TestCase):
    def test_a_loan_is_due_after_three_weeks(self):
        self.assertEqual(Loan("Dune", "ana", MARCH).due_date, day(21))

    def test_a_renewal_adds_three_weeks(self):
        loan = Loan("Dune", "ana", MARCH)
        self.assertEqual(loan.renew(day(20)), day(42))

    def test_a_late_loan_cannot_be_renewed(self):
        with self.assertRaises(RenewalRefused):
            Loan("Dune", "ana", MARCH).renew(day(22))

    def test_a_third_renewal_is_refused(self):
        with self.assertRaises(RenewalRefused):
            Loan("Dune", "ana", MARCH, renewals=2).renew(day(1))

    def test_a_returned_loan_stops_being_late(self):
        self.assertEqual(Loan("Dune", "ana", MARCH, returned=day(23)).days_late(day(90)), 2)

    def test_overdue_loans_come_earliest_first(self):
        loans = [Loan("Emma", "bo", day(3)), Loan("Dune", "ana", MARCH), Loan("Kim", "cy", day(60))]
        self.assertEqual([loan.book for loan in overdue(loans, day(40))], ["Dune", "Emma"])

    def test_open_loans_can_be_asked_for_one_reader(self):
        loans = [Loan("Emma", "bo", MARCH), Loan("Dune", "ana", MARCH, returned=day(1))]
        self.assertEqual(open_loans(loans, "ana"), [])
