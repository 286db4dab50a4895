//! Links the module as Python loads it, where the system asks for that, so that `cargo build` builds it without maturin.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
