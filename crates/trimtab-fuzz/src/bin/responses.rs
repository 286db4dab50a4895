//! Requests in the format of Responses.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use trimtab_core::Format;
use trimtab_fuzz::{check_request, mutate_json};

fuzz_target!(|data: &[u8]| check_request(data, Format::Responses));

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate_json(data, size, most, seed) });
