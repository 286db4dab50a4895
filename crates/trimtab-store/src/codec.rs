//! How contents are named and numbers are written. Takes bytes; gives hashes and short lists of numbers, and reads them
//! back without trusting them.

/// The first half of a BLAKE3 hash: a handle is its first six bytes.
pub(crate) type StoredHash = [u8; 16];

/// What a stored content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredKind {
    /// The original of a block that can be read and searched.
    Block,
    /// The original of a block that holds an image, a sound or a document.
    Media,
    /// What is new in the bytes of a request, with holes where blocks stand.
    Parts,
    /// A text that was sent instead of a block.
    Sent,
    /// A model's summary.
    Summary,
}

impl StoredKind {
    pub(crate) fn number(self) -> u8 {
        match self {
            StoredKind::Block => 0,
            StoredKind::Media => 1,
            StoredKind::Parts => 2,
            StoredKind::Sent => 3,
            StoredKind::Summary => 4,
        }
    }

    pub(crate) fn of_number(number: u8) -> Option<StoredKind> {
        let all =
            [StoredKind::Block, StoredKind::Media, StoredKind::Parts, StoredKind::Sent, StoredKind::Summary];
        all.into_iter().find(|kind| kind.number() == number)
    }
}

/// Names a content. Blocks are named by their bytes alone, as their handles are; other kinds cannot be mistaken for them.
pub(crate) fn hash_of(kind: StoredKind, content: &[u8]) -> StoredHash {
    let mut hasher = blake3::Hasher::new();
    match kind {
        StoredKind::Block | StoredKind::Media => {}
        StoredKind::Parts | StoredKind::Sent | StoredKind::Summary => {
            hasher.update(&[0, kind.number()]);
        }
    }
    hasher.update(content);
    let mut half = [0; 16];
    half.copy_from_slice(hasher.finalize().as_bytes().split_at(16).0);
    half
}

/// Returns the handle of a hash.
pub(crate) fn handle_of(hash: &[u8]) -> String {
    hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a number in as few bytes as it needs, seven bits each.
pub(crate) fn put_number(list: &mut Vec<u8>, number: u64) {
    let mut rest = number;
    loop {
        let low = u8::try_from(rest & 0x7f).unwrap_or(0);
        rest >>= 7;
        if rest == 0 {
            return list.push(low);
        }
        list.push(low | 0x80);
    }
}

/// Reads what [`put_number`] wrote; nothing where the bytes end too early.
pub(crate) fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

pub(crate) fn take_size(rest: &mut &[u8]) -> Option<usize> {
    usize::try_from(take_number(rest)?).ok()
}

pub(crate) fn take_bytes<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(count)?;
    *rest = behind;
    Some(taken)
}

/// A length as the numbers of a store: no content is longer than 1 GiB.
pub(crate) fn to_number(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

pub(crate) fn to_size(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_they_were_written() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut list = Vec::new();
            put_number(&mut list, number);
            assert_eq!(take_number(&mut list.as_slice()), Some(number));
            assert_eq!(take_number(&mut &list[..list.len() - 1]), None, "{number} cut short");
        }
    }

    #[test]
    fn a_block_is_named_as_its_handle_names_it() {
        assert_eq!(handle_of(&hash_of(StoredKind::Block, b"")), "af1349b9f5f9", "BLAKE3 of nothing");
        assert_ne!(hash_of(StoredKind::Block, b"x"), hash_of(StoredKind::Sent, b"x"));
    }
}
