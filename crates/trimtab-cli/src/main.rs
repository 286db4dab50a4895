//! The command line of trimtab.
fn main() {}
