//! Any bytes as JSON.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trimtab_fuzz::check_json;

fuzz_target!(|data: &[u8]| check_json(data));
