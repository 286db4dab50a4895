//! Folding, end to end.
