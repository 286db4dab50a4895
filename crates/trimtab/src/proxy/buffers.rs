//! Buffers of requests that are over, for those that come. Takes them back; gives one that is large enough. The allocator
//! returns memory to the system after a few milliseconds, and asking for it again takes longer than filling it.
//! Never keeps more than a few.

use std::sync::{Mutex, PoisonError};

/// How many buffers are kept, and how many bytes they may have together.
const KEPT: usize = 8;
const KEPT_BYTES: usize = 32 * 1024 * 1024;

/// Room for what the next requests of a conversation add: a part of what it has.
const ROOM: usize = 8;

/// Buffers to be used again.
#[derive(Default)]
pub(crate) struct BufferPool {
    spare: Mutex<Vec<Vec<u8>>>,
}

impl BufferPool {
    /// Returns an empty buffer for so many bytes.
    pub(crate) fn take_buffer(&self, bytes: usize) -> Vec<u8> {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        // A small request must not sit in the buffer of a large one for as long as it is warm.
        let fits = |buffer: &Vec<u8>| (bytes..=bytes.saturating_mul(2)).contains(&buffer.capacity());
        match spare.iter().position(fits) {
            Some(index) => spare.swap_remove(index),
            None => Vec::with_capacity(bytes.saturating_add(bytes / ROOM)),
        }
    }

    /// Gives all buffers back.
    pub(crate) fn drop_spare(&self) {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Keeps a buffer that nobody needs any more; the oldest goes where there are too many.
    pub(crate) fn give_back(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.push(buffer);
        while spare.len() > KEPT || spare.iter().map(Vec::capacity).sum::<usize>() > KEPT_BYTES {
            spare.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives buffers of these sizes back; returns what one for `bytes` then has.
    fn check(given: &[usize], bytes: usize) -> usize {
        let buffers = BufferPool::default();
        given.iter().for_each(|bytes| buffers.give_back(vec![1; *bytes]));
        let taken = buffers.take_buffer(bytes);
        assert!(taken.is_empty());
        taken.capacity()
    }

    #[test]
    fn a_buffer_that_is_large_enough_is_used_again() {
        assert_eq!(check(&[900, 1200, 5000], 1000), 1200);
    }

    #[test]
    fn one_that_is_much_too_large_is_not() {
        assert_eq!(check(&[900, 5000], 1000), 1125);
    }

    #[test]
    fn few_are_kept_and_the_latest_of_them() {
        let many: Vec<usize> = (0..2 * KEPT).map(|number| 1000 + number).collect();
        assert_eq!(check(&many, 1000), 1000 + KEPT);
        assert_eq!(check(&[40, KEPT_BYTES], 40), 45);
    }
}
