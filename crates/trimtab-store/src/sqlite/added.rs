//! What was inserted into a request after it was fitted, as a row holds it. Takes insertions; gives bytes, and back.

use trimtab_core::markers::{AddedFields, Insertion};

use crate::codec::{put_number, take_bytes, take_number, take_size};

/// Writes insertions, which come in the order of their places.
pub(super) fn pack_insertions(insertions: &[Insertion]) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut before = 0;
    for Insertion { at, text } in insertions {
        put_number(&mut packed, u64::from(at.saturating_sub(before)));
        put_number(&mut packed, u64::try_from(text.len()).unwrap_or(u64::MAX));
        packed.extend_from_slice(text.as_bytes());
        before = *at;
    }
    packed
}

/// Reads what [`pack_insertions`] wrote; nothing where it is damaged.
pub(super) fn unpack_insertions(packed: &[u8]) -> Option<Vec<Insertion>> {
    let mut rest = packed;
    let mut insertions: Vec<Insertion> = Vec::new();
    while !rest.is_empty() {
        let before = insertions.last().map_or(0, |insertion| insertion.at);
        let at = before.checked_add(u32::try_from(take_number(&mut rest)?).ok()?)?;
        let length = take_size(&mut rest)?;
        let text = String::from_utf8(take_bytes(&mut rest, length)?.to_vec()).ok()?;
        insertions.push(Insertion { at, text });
    }
    Some(insertions)
}

/// Tells whether markers are among them without which nothing would have been cached.
pub(super) fn has_cache_control(packed: &[u8]) -> bool {
    unpack_insertions(packed).is_some_and(|insertions| AddedFields::from(insertions).has_cache_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insertions_come_back_as_they_were() {
        let insertion = |at: u32, text: &str| Insertion { at, text: text.to_owned() };
        let marker = r#","cache_control":{"type":"ephemeral"}"#;
        let all =
            vec![insertion(0, "[ü"), insertion(0, ""), insertion(300, marker), insertion(u32::MAX, "]")];
        let packed = pack_insertions(&all);
        assert_eq!(unpack_insertions(&packed), Some(all));
        assert_eq!(unpack_insertions(&packed[..packed.len() - 1]), None);
        assert!(has_cache_control(&packed) && !has_cache_control(&pack_insertions(&[insertion(1, "x")])));
        assert_eq!(unpack_insertions(&[]), Some(Vec::new()));
    }
}
