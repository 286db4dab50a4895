//! Numbers as people write them: `50k`, `1.5M`, `35%`, `2GB`, `30d`. Takes the words of one argument; gives the number, or a sentence
//! that says what to write instead.

use std::net::{Ipv4Addr, SocketAddr};

use trimtab_core::Tokens;
use trimtab_store::Retention;

/// A number of tokens, or a share of something that the command names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Amount {
    Tokens(Tokens),
    /// More than 0, at most 1.
    Share(f64),
}

/// Reads a number of tokens: `50000`, `50,000`, `50k`, `1.5M`.
pub(crate) fn parse_tokens(words: &str) -> Result<Tokens, String> {
    let wrong = || format!("{words:?} is not a number of tokens: write 50000, 50k or 1.5M");
    parse_number(words).filter(|count| *count > 0).map(Tokens).ok_or_else(wrong)
}

/// Reads a number of tokens, or a share: `35%`.
pub(crate) fn tokens_or_share(words: &str) -> Result<Amount, String> {
    let wrong = || format!("{words:?} is neither a number of tokens (50000, 50k, 1.5M) nor a share (35%)");
    let Some(share) = words.trim().strip_suffix('%') else {
        return parse_tokens(words).map(Amount::Tokens).map_err(|_| wrong());
    };
    let share: f64 = share.trim().parse().map_err(|_| wrong())?;
    if share > 0.0 && share <= 100.0 { Ok(Amount::Share(share / 100.0)) } else { Err(wrong()) }
}

/// Reads an age as milliseconds: `30d`.
pub(crate) fn parse_age(words: &str) -> Result<i64, String> {
    let wrong = || format!("{words:?} is not an age: write 30d, 12h or 4w");
    let (digits, unit) =
        words.trim().split_at_checked(words.trim().len().saturating_sub(1)).ok_or_else(wrong)?;
    let minutes = match unit {
        "m" => 1,
        "h" => 60,
        "d" => 24 * 60,
        "w" => 7 * 24 * 60,
        _ => return Err(wrong()),
    };
    let count = digits.parse::<u32>().map_err(|_| wrong())?;
    Ok(i64::from(count) * minutes * 60_000)
}

/// Reads an age that is not zero.
pub(super) fn real_age(words: &str) -> Result<i64, String> {
    match parse_age(words)? {
        0 => Err(format!("{words:?} would be every session: name sessions, or an age such as 30d")),
        age => Ok(age),
    }
}

/// Reads how long conversations are kept: long enough that nothing is removed which a conversation still needs.
pub(crate) fn parse_long_age(words: &str) -> Result<i64, String> {
    let age = parse_age(words)?;
    let long = age >= Retention::LIVE_MS;
    if long {
        Ok(age)
    } else {
        Err(format!("{words:?} is too short: conversations are kept for 1d at least"))
    }
}

/// Reads where to listen: `127.0.0.1:8790`, `localhost:8790`, or a port of this machine.
pub(crate) fn parse_address(words: &str) -> Result<SocketAddr, String> {
    let wrong = || format!("{words:?} is not an address: write 127.0.0.1:8790, or a port such as 8790");
    let words = words.trim();
    if let Ok(port) = words.strip_prefix(':').unwrap_or(words).parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    let words =
        words.strip_prefix("localhost:").map_or_else(|| words.to_owned(), |port| format!("127.0.0.1:{port}"));
    words.parse().map_err(|_| wrong())
}

/// Reads a port.
pub(crate) fn parse_port(words: &str) -> Result<u16, String> {
    words.trim().parse().map_err(|_| format!("{words:?} is not a port: write a number such as 8790"))
}

/// Reads a size in bytes: `2GB`, `1.5G`.
pub(crate) fn parse_size(words: &str) -> Result<u64, String> {
    let wrong = || format!("{words:?} is not a size: write 2GB, 500MB or a number of bytes");
    let words = words.trim();
    let words = words.strip_suffix(['b', 'B']).unwrap_or(words);
    parse_number(words).ok_or_else(wrong)
}

/// Reads a whole number, with or without a unit: k, M or G (thousands of each other).
fn parse_number(words: &str) -> Option<u64> {
    let words = words.trim();
    let digits = words.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor: u64 = match words.get(digits.len()..)?.to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        _ => return None,
    };
    let digits: String = digits.trim().chars().filter(|letter| !matches!(letter, ',' | '_')).collect();
    let (whole, part) = digits.split_once('.').unwrap_or((&digits, ""));
    let is_number = |text: &str| text.bytes().all(|letter| letter.is_ascii_digit());
    if whole.is_empty() || !is_number(part) || part.len() > 9 {
        return None;
    }
    let scale = 10_u64.checked_pow(u32::try_from(part.len()).ok()?)?;
    let part = if part.is_empty() { 0 } else { part.parse::<u64>().ok()?.checked_mul(factor)? / scale };
    is_number(whole).then_some(())?;
    whole.parse::<u64>().ok()?.checked_mul(factor)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (words, expected) in [
            ("50000", 50_000),
            ("50,000", 50_000),
            ("50k", 50_000),
            ("1.5M", 1_500_000),
            (" 0.25m ", 250_000),
            ("2g", 2_000_000_000),
        ] {
            assert_eq!(parse_tokens(words), Ok(Tokens(expected)), "{words}");
        }
        for words in ["", "k", "-5", "5x", "1.5.2", "1e3", ".", "0", "99999999999999999999", "35%"] {
            assert!(parse_tokens(words).is_err(), "{words}");
        }
    }

    #[test]
    fn a_share_is_more_than_nothing_and_at_most_all() {
        assert_eq!(tokens_or_share("35%"), Ok(Amount::Share(0.35)));
        assert_eq!(tokens_or_share("8k"), Ok(Amount::Tokens(Tokens(8000))));
        for words in ["0%", "120%", "%", "much"] {
            assert!(tokens_or_share(words).is_err(), "{words}");
        }
    }

    #[test]
    fn a_port_is_enough_of_an_address() {
        for words in ["8790", ":8790", "localhost:8790", "127.0.0.1:8790"] {
            assert_eq!(
                parse_address(words).map(|address| address.to_string()),
                Ok("127.0.0.1:8790".to_owned()),
                "{words}"
            );
        }
        assert_eq!(parse_address("[::1]:80").map(|address| address.port()), Ok(80));
        assert!(parse_port("8790") == Ok(8790) && parse_port("x").is_err_and(|words| words.contains("8790")));
        assert!(parse_address("99999").is_err() && parse_address("example.org").is_err());
    }

    #[test]
    fn sizes_and_ages_have_units() {
        assert_eq!(parse_size("2GB"), Ok(2_000_000_000));
        assert_eq!(parse_size("1.5 MB"), Ok(1_500_000));
        assert_eq!(parse_size("512"), Ok(512));
        assert!(parse_size("2TB").is_err());
        assert_eq!(parse_age("2d"), Ok(2 * 24 * 60 * 60 * 1000));
        assert!(real_age("0d").is_err() && parse_age("d").is_err() && parse_age("").is_err());
    }
}
