"""What a late return costs, in cents."""

GRACE_DAYS = 2
CENTS_PER_DAY = 25
CAP_CENTS = 1500

# Readers in these groups never pay.
EXEMPT_GROUPS = frozenset({"staff", "school"})


def fee_for_days(days_late):
    """Returns the fee for a number of late days, grace days being free."""
    if days_late < GRACE_DAYS:
        return 0
    return days_late * CENTS_PER_DAY


def fee(loan, today, group=None):
    """Returns the fee of one loan as of today."""
    if group in EXEMPT_GROUPS:
        return 0
    return fee_for_days(loan.days_late(today))


def total(loans, today, groups=None):
    """Returns what each reader owes, readers who owe nothing left out."""
    groups = groups or {}
    owed = {}
    for loan in loans:
        cents = fee(loan, today, groups.get(loan.reader))
        if cents:
            owed[loan.reader] = owed.get(loan.reader, 0) + cents
    return owed


def money(cents):
    """Writes cents as an amount with two decimals."""
    return f"{cents // 100}.{cents % 100:02d}"
