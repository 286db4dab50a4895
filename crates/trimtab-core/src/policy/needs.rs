//! The table by which making room weighs blocks: [`NeedTable`], weights by feature. It ships as `needs.tsv`, made by
//! `scripts/fit-needs`; a policy may bring its own. Plans look weights up in it, features are theirs.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

/// The table that ships.
static SHIPPED: LazyLock<NeedTable> =
    LazyLock::new(|| NeedTable::read(include_str!("needs.tsv")).unwrap_or_default());

/// The weight of each level of one factor.
type LevelWeights = HashMap<Box<str>, f64>;

/// Weights by factor and level.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct NeedTable {
    weights: Arc<HashMap<Box<str>, LevelWeights>>,
}

impl NeedTable {
    /// Returns the table that ships.
    pub(crate) fn find_shipped() -> NeedTable {
        SHIPPED.clone()
    }

    /// Reads a table of three columns: factor, level, weight.
    pub(crate) fn read(tsv: &str) -> Result<NeedTable, String> {
        let mut weights: HashMap<Box<str>, HashMap<Box<str>, f64>> = HashMap::new();
        for (number, line) in tsv.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let columns: Vec<&str> = line.split('\t').collect();
            let weight =
                |text: &str| text.parse::<f64>().ok().filter(|weight| weight.is_finite() && *weight >= 0.0);
            let [factor, level, text] = columns.as_slice() else {
                return Err(format!("line {} is no factor, level and weight: {line}", number + 1));
            };
            let weight = weight(text).ok_or_else(|| format!("line {}: {text:?} is no weight", number + 1))?;
            weights.entry((*factor).into()).or_default().insert((*level).into(), weight);
        }
        Ok(NeedTable { weights: Arc::new(weights) })
    }

    /// Returns the weight of one level; 1 where the table has none.
    pub(crate) fn weight(&self, factor: &str, level: &str) -> f64 {
        self.weights.get(factor).and_then(|levels| levels.get(level)).copied().unwrap_or(1.0)
    }

    /// Returns the product of the weights of some levels.
    pub(crate) fn product(&self, features: &[(&str, &str)]) -> f64 {
        features.iter().map(|(factor, level)| self.weight(factor, level)).product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_need_is_the_product_of_the_weights_of_its_levels() {
        let table = NeedTable::read("# factor\tlevel\tweight\nkind\tfile\t0.5\nage\told\t0.1\n").unwrap();
        let need = table.product(&[("kind", "file"), ("age", "old"), ("age", "unknown")]);
        assert!((need - 0.05).abs() < 1e-12, "{need}");
    }

    #[test]
    fn what_is_no_table_is_refused_with_its_line() {
        assert_eq!(NeedTable::read("kind\tfile\t-1"), Err("line 1: \"-1\" is no weight".to_owned()));
        let wrong = Err("line 2 is no factor, level and weight: kind file".to_owned());
        assert_eq!(NeedTable::read("\nkind file"), wrong);
    }

    #[test]
    fn the_shipped_table_is_read() {
        assert!(NeedTable::read(include_str!("needs.tsv")).is_ok());
        assert!(
            NeedTable::find_shipped().weight("kind", "run")
                < NeedTable::find_shipped().weight("kind", "file")
        );
    }
}
