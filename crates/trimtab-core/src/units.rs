//! The units everything is measured in: [`Tokens`], which cannot be mistaken for bytes, characters or dollars and never wrap, and
//! [`Millis`], a moment. Every other module counts in them.

use std::{
    fmt,
    iter::Sum,
    ops::{Add, AddAssign, Sub},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};

/// A point in time: milliseconds since 1970 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub i64);

/// What lies before 1970 counts as then.
impl From<SystemTime> for Millis {
    fn from(time: SystemTime) -> Millis {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A number of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tokens(pub u64);

impl Tokens {
    /// No tokens.
    pub const ZERO: Self = Self(0);

    /// Returns `count` as tokens.
    pub fn from_len(count: usize) -> Self {
        Self(u64::try_from(count).unwrap_or(u64::MAX))
    }

    /// Returns this many for each of `count` things.
    #[must_use]
    pub fn times(self, count: usize) -> Self {
        Self(self.0.saturating_mul(Self::from_len(count).0))
    }

    /// Returns the number as a float, for prices.
    #[expect(
        clippy::as_conversions,
        clippy::cast_precision_loss,
        reason = "no context comes near 2^52 tokens"
    )]
    pub fn to_float(self) -> f64 {
        self.0 as f64
    }

    /// Returns this number in millions, as prices are per million.
    pub(crate) fn in_millions(self) -> f64 {
        self.to_float() / 1e6
    }

    /// Returns this number times `factor`, rounded to the nearest token; nothing below zero.
    #[expect(
        clippy::as_conversions,
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-integer `as` saturates, and no context comes near 2^52 tokens"
    )]
    pub fn scale(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor).round() as u64)
    }
}

impl Add for Tokens {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Subtracts down to zero, never below.
impl Sub for Tokens {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Self>>(numbers: I) -> Self {
        numbers.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::Tokens;

    #[test]
    fn sums_stop_at_the_top_and_differences_at_zero() {
        assert_eq!(Tokens(u64::MAX) + Tokens(1), Tokens(u64::MAX));
        assert_eq!(Tokens(3) - Tokens(5), Tokens::ZERO);
        assert_eq!([Tokens(1), Tokens(2)].into_iter().sum::<Tokens>(), Tokens(3));
    }

    #[test]
    fn scaling_rounds_to_the_nearest() {
        assert_eq!(Tokens(10).scale(1.25), Tokens(13));
        assert_eq!(Tokens(10).scale(-1.0), Tokens::ZERO);
    }

    #[test]
    fn it_prints_and_is_stored_as_a_plain_number() {
        assert_eq!(format!("{:>5}", Tokens(975)), "  975");
        assert_eq!(serde_json::to_string(&Tokens(975)).unwrap(), "975");
    }
}
