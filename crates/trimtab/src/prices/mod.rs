mod name;
pub(crate) use name::bare_model_name;
