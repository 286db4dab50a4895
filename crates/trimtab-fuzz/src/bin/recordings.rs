//! Transcript files of any agent.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use trimtab_fuzz::{check_recording, mutate_lines};

fuzz_target!(|data: &[u8]| check_recording(data));

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| {
    mutate_lines(data, size, most, seed)
});
