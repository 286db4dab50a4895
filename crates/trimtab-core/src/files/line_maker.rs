//! Makes lines. Takes texts that an operation writes or shows and the lines that stood there before; gives lines
//! with identity and step. Never gives a line that was left alone a new identity, as far as it can tell.

use super::lines::LineRecord;

/// Up to this many pairs of lines are compared to find which lines a rewrite left alone (a moment's work).
const MAX_COMPARED: usize = 1 << 18;

/// Makes the lines that an operation writes or shows.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineMaker {
    pub(super) next_id: u32,
    pub(super) step: u32,
}

impl LineMaker {
    pub(super) fn make_line(&mut self, text: &str) -> LineRecord {
        self.next_id += 1;
        LineRecord { text: text.into(), id: self.next_id, seen: self.step }
    }

    /// Makes new lines; those that stood there before keep their identity.
    pub(super) fn make_lines(
        &mut self,
        before: &[Option<&LineRecord>],
        after: &[Option<String>],
    ) -> Vec<Option<LineRecord>> {
        let same = match_unchanged(before, after);
        let make = |(text, old): (&Option<String>, Option<usize>)| {
            let text = text.as_deref()?;
            let known = old.and_then(|index| before.get(index).copied().flatten());
            Some(match known {
                Some(line) => LineRecord { seen: self.step, ..line.clone() },
                None => self.make_line(text),
            })
        };
        after.iter().zip(same).map(make).collect()
    }
}

/// Returns for each new line the old one that it is, in order: equal lines at both ends, then the longest common
/// sequence between them, where it is small enough to look for.
fn match_unchanged(before: &[Option<&LineRecord>], after: &[Option<String>]) -> Vec<Option<usize>> {
    let same = |old: usize, new: usize| match (before.get(old).copied().flatten(), after.get(new)) {
        (Some(line), Some(Some(text))) => *line.text == **text,
        _ => false,
    };
    let most = before.len().min(after.len());
    let head = (0..most).take_while(|index| same(*index, *index)).count();
    let tail = (1..=most - head).take_while(|back| same(before.len() - back, after.len() - back)).count();
    let (rows, columns) = (before.len() - head - tail, after.len() - head - tail);
    let mut found: Vec<Option<usize>> = (0..head).map(Some).collect();
    let middle = if rows * columns > MAX_COMPARED {
        vec![None; columns]
    } else {
        longest_common(rows, columns, |row, column| same(head + row, head + column))
    };
    found.extend(middle.into_iter().map(|row| row.map(|row| head + row)));
    found.extend((0..tail).map(|index| Some(before.len() - tail + index)));
    found
}

/// Returns for each column the row that it is paired with in the longest common sequence.
pub(super) fn longest_common(
    rows: usize,
    columns: usize,
    same: impl Fn(usize, usize) -> bool,
) -> Vec<Option<usize>> {
    let mut best = vec![0_u32; (rows + 1) * (columns + 1)];
    let place = |row: usize, column: usize| row * (columns + 1) + column;
    let at = |best: &[u32], row, column| best.get(place(row, column)).copied().unwrap_or(0);
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            let length = if same(row, column) {
                at(&best, row + 1, column + 1) + 1
            } else {
                at(&best, row + 1, column).max(at(&best, row, column + 1))
            };
            if let Some(cell) = best.get_mut(place(row, column)) {
                *cell = length;
            }
        }
    }
    let mut found = vec![None; columns];
    let (mut row, mut column) = (0, 0);
    while row < rows && column < columns {
        if same(row, column) {
            if let Some(place) = found.get_mut(column) {
                *place = Some(row);
            }
            (row, column) = (row + 1, column + 1);
        } else if at(&best, row + 1, column) >= at(&best, row, column + 1) {
            row += 1;
        } else {
            column += 1;
        }
    }
    found
}
