//! Tables with one row per block: [`Blocks`], indexed by [`BlockId`]. Facts, counts and plans keep what they know of blocks in them.
//! An id of another history is a fault of ours: it stops the program in tests and the request in the proxy, and never reads a default.

use std::ops::{Index, IndexMut};

use super::BlockId;
use crate::json::{narrow, widen};

/// A table with one row per block of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blocks<T>(Vec<T>);

impl<T> Default for Blocks<T> {
    fn default() -> Blocks<T> {
        Blocks(Vec::new())
    }
}

impl<T> Blocks<T> {
    /// Makes a row for each of so many blocks.
    pub(crate) fn from_fn(blocks: usize, row: impl FnMut(BlockId) -> T) -> Blocks<T> {
        Blocks(ids(blocks).map(row).collect())
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        &self.0
    }

    pub(crate) fn into_vec(self) -> Vec<T> {
        self.0
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }

    pub(crate) fn last(&self) -> Option<&T> {
        self.0.last()
    }

    /// Returns the blocks that have a row, in order.
    pub(crate) fn ids(
        &self,
    ) -> impl DoubleEndedIterator<Item = BlockId> + ExactSizeIterator + Clone + use<T> {
        ids(self.0.len())
    }

    /// Adds the row of the next block.
    pub(crate) fn push(&mut self, row: T) {
        self.0.push(row);
    }

    /// Forgets the rows of all but the first blocks.
    pub(crate) fn truncate(&mut self, blocks: usize) {
        self.0.truncate(blocks);
    }
}

impl<T: Clone> Blocks<T> {
    /// Makes the same row for each of so many blocks.
    pub(crate) fn with_rows(blocks: usize, row: T) -> Blocks<T> {
        Blocks(vec![row; blocks])
    }
}

impl<T: Default> Blocks<T> {
    /// Returns the row of a block of a table that grows as it is used.
    pub(crate) fn grown_to(&mut self, id: BlockId) -> &mut T {
        if self.0.len() <= widen(id.0) {
            self.0.resize_with(widen(id.0) + 1, T::default);
        }
        &mut self[id]
    }
}

impl<T> FromIterator<T> for Blocks<T> {
    fn from_iter<I: IntoIterator<Item = T>>(rows: I) -> Blocks<T> {
        Blocks(rows.into_iter().collect())
    }
}

impl<T> Index<BlockId> for Blocks<T> {
    type Output = T;

    #[track_caller]
    fn index(&self, id: BlockId) -> &T {
        row_of(&self.0, id)
    }
}

impl<T> IndexMut<BlockId> for Blocks<T> {
    #[track_caller]
    #[expect(clippy::indexing_slicing, reason = "as in `row_of`")]
    fn index_mut(&mut self, id: BlockId) -> &mut T {
        &mut self.0[widen(id.0)]
    }
}

/// Returns the row of a block.
#[track_caller]
#[expect(
    clippy::indexing_slicing,
    reason = "ids are made from the history that the rows are of: one that is out of range is no input but a fault of ours"
)]
pub(crate) fn row_of<T>(rows: &[T], id: BlockId) -> &T {
    &rows[widen(id.0)]
}

/// Returns the ids of the first blocks, in order.
pub(crate) fn ids(blocks: usize) -> impl DoubleEndedIterator<Item = BlockId> + ExactSizeIterator + Clone {
    (0..narrow(blocks)).map(BlockId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_gives_each_block_its_row_and_grows_where_it_may() {
        let mut table = Blocks::from_fn(3, |id| id.0 * 10);
        table[BlockId(1)] += 1;
        assert_eq!((table[BlockId(1)], table.len(), table.ids().next_back()), (11, 3, Some(BlockId(2))));
        *table.grown_to(BlockId(4)) = 7;
        assert_eq!(table.as_slice(), [0, 11, 20, 0, 7]);
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn a_block_of_another_history_has_no_row() {
        let _ = Blocks::with_rows(2, 0)[BlockId(2)];
    }
}
