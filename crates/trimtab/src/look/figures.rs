//! Figures as people read them on a page: dollars, shares, changes and tokens. The minus sign is the real one, as wide as a plus.

use crate::output::short_number;

/// Returns dollars: `$12.30`, with more digits below ten cents, and a sign below zero.
pub(crate) fn dollars(amount: f64) -> String {
    let digits = if amount.abs() < 0.1 && amount != 0.0 { 4 } else { 2 };
    let sign = if is_below_zero(amount, digits) { "−" } else { "" };
    let text = format!("{:.digits$}", amount.abs());
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), crate::output::group_thousands);
    format!("{sign}${whole}.{rest}")
}

/// Returns a share in percent: `97.4 %`.
pub(crate) fn percent(share: f64) -> String {
    let sign = if is_below_zero(share * 100.0, 1) { "−" } else { "" };
    format!("{sign}{:.1} %", (share * 100.0).abs())
}

/// Returns a change in percent, with its sign: `−13.2 %`, `+0.2 %`, `0 %`.
pub(crate) fn percent_change(change: f64) -> String {
    let digits = (change * 1000.0).round();
    if digits == 0.0 {
        return "0 %".to_owned();
    }
    format!("{}{:.1} %", if digits < 0.0 { "−" } else { "+" }, (change * 100.0).abs())
}

/// Returns tokens in at most four letters or so: `75.9k`.
pub(crate) fn tokens_short(tokens: u64) -> String {
    short_number(tokens)
}

/// Tells whether a number is still below zero once it is cut to so many digits.
fn is_below_zero(number: f64, digits: usize) -> bool {
    number < 0.0 && format!("{:.digits$}", number.abs()).bytes().any(|letter| matches!(letter, b'1'..=b'9'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_keep_their_sign() {
        let all = [0.0, 0.0042, -0.0042, -0.000_001, 1.0, -13.205, 1234.5].map(dollars);
        assert_eq!(all, ["$0.00", "$0.0042", "−$0.0042", "$0.0000", "$1.00", "−$13.21", "$1,234.50"]);
        assert_eq!([0.974, -0.002].map(percent), ["97.4 %", "−0.2 %"]);
        assert_eq!([-0.132, 0.002, 0.0, -0.0001].map(percent_change), ["−13.2 %", "+0.2 %", "0 %", "0 %"]);
    }
}
