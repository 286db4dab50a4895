//! How long pauses last: [`PauseTable`], the share of pauses that are not over after so many minutes. It ships as `pauses.tsv`, made by
//! `scripts/fit-pauses` from recorded sessions; the rule of pings looks chances up in it.

use std::sync::LazyLock;

/// The table that ships; a test holds that it can be read.
static SHIPPED: LazyLock<PauseTable> =
    LazyLock::new(|| PauseTable::read(include_str!("pauses.tsv")).unwrap_or_default());

const MINUTE_MS: i64 = 60_000;

/// Which share of pauses is not over after some time; conversations that never went on count as pauses without an end.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PauseTable {
    /// Milliseconds and the share that lasts longer, in order of time.
    points: Vec<(i64, f64)>,
}

impl PauseTable {
    /// Returns the table that ships.
    pub fn find_shipped() -> &'static PauseTable {
        &SHIPPED
    }

    /// Reads a table of two columns: minutes, share that lasts longer.
    ///
    /// # Errors
    /// Names the line that is no row, or that is not in order.
    pub fn read(tsv: &str) -> Result<PauseTable, String> {
        let mut points: Vec<(i64, f64)> = Vec::new();
        for (number, line) in tsv.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let (time, share) = parse_row(line)
                .ok_or_else(|| format!("line {} is no number of minutes and share: {line}", number + 1))?;
            if points.last().is_some_and(|(before, more)| *before >= time || *more < share) {
                return Err(format!("line {} is not in order: {line}", number + 1));
            }
            points.push((time, share));
        }
        Ok(PauseTable { points })
    }

    /// Returns the share of pauses that last longer, between two rows in a straight line. After the last row nobody comes back.
    pub(super) fn share_lasting(&self, idle_ms: i64) -> f64 {
        let after = self.points.partition_point(|(time, _)| *time <= idle_ms);
        let before = after.checked_sub(1).and_then(|index| self.points.get(index));
        match (before, self.points.get(after)) {
            (None, _) => 1.0,
            (Some((_, share)), None) => *share,
            (Some((from, share)), Some((to, next))) => {
                let part = minutes_between(*from, idle_ms) / minutes_between(*from, *to);
                share + (next - share) * part
            }
        }
    }
}

fn parse_row(line: &str) -> Option<(i64, f64)> {
    let (minutes, share) = line.split_once('\t')?;
    let minutes: u32 = minutes.parse().ok()?;
    let share = share.parse().ok().filter(|share| (0.0..=1.0).contains(share))?;
    Some((i64::from(minutes) * MINUTE_MS, share))
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "no pause lasts 2^52 milliseconds")]
fn minutes_between(from: i64, to: i64) -> f64 {
    to.saturating_sub(from) as f64 / MINUTE_MS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_rows_the_share_falls_in_a_straight_line() {
        let table = PauseTable::read("# minutes\tlasting\n4\t1\n8\t0.6").expect("a table");
        let shares = [0, 240_000, 300_000, 480_000, 9_000_000].map(|idle| table.share_lasting(idle));
        assert_eq!(shares, [1.0, 1.0, 0.9, 0.6, 0.6]);
    }

    #[test]
    fn what_is_no_table_is_refused_with_its_line() {
        for (tsv, line) in [("4", "line 1"), ("4\t1\n4\t0.5", "line 2"), ("4\t0.5\n5\t0.6", "line 2")] {
            let fault = PauseTable::read(tsv).expect_err(tsv);
            assert!(fault.starts_with(line), "{fault}");
        }
    }

    #[test]
    fn the_shipped_table_is_read() {
        let table = PauseTable::read(include_str!("pauses.tsv")).expect("the table that ships");
        assert_eq!(&table, PauseTable::find_shipped());
        assert!(!table.points.is_empty());
    }
}
