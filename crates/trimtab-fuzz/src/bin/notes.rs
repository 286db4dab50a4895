//! Texts that tools print, and the notes that stand for them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trimtab_fuzz::check_notes;

fuzz_target!(|data: &[u8]| check_notes(data));
