//! Linear layers in a suite: the shapes of models, each once for each sparsity and number of tokens.

use hopper_sparse::Dtype;
use serde::Deserialize;

use super::linear::{LinearWorkload, WeightMask, WeightsLaw};

/// The section `[linear]` of a workload file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearGrid {
    /// In place of the suite's default.
    pub peer: Option<String>,
    /// In place of the suite's default.
    pub implementations: Option<Vec<String>>,
    /// Beside those, where the mask is 2:4.
    #[serde(default)]
    two_of_four: Vec<String>,
    /// Numbers of tokens.
    tokens: Vec<usize>,
    /// Parts of W that are zero, 0 to 1.
    sparsity: Vec<f64>,
    mask: WeightMask,
    model: Vec<Model>,
}

/// The layers of a model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    name: String,
    layers: Vec<Layer>,
}

/// W of a layer is `m` x `k`: outputs and inputs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Layer {
    name: String,
    m: usize,
    k: usize,
}

/// What the command line has in place of the file's; what is empty leaves that as it is.
#[derive(Clone, Debug, Default)]
pub struct LinearChoice {
    /// Names of models, or beginnings of them.
    pub models: Vec<String>,
    /// Numbers of tokens.
    pub tokens: Vec<usize>,
    /// Parts of W that are zero.
    pub sparsity: Vec<f64>,
    /// How the zeros lie.
    pub mask: Option<WeightMask>,
}

/// A workload of the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedLinear {
    /// Model, layer, mask, sparsity and tokens.
    pub name: String,
    /// The model.
    pub model: String,
    /// What is computed.
    pub workload: LinearWorkload,
}

impl LinearGrid {
    /// Puts in place what `choice` has.
    ///
    /// # Errors
    /// The first name of `choice` that no model's begins with.
    pub fn choose(&mut self, choice: &LinearChoice) -> Result<(), String> {
        let is_asked = |model: &Model, name: &String| model.name.starts_with(name.as_str());
        if let Some(unknown) = choice.models.iter().find(|name| !self.model.iter().any(|model| is_asked(model, name))) {
            return Err(unknown.clone());
        }
        if !choice.models.is_empty() {
            self.model.retain(|model| choice.models.iter().any(|name| is_asked(model, name)));
        }
        if !choice.tokens.is_empty() {
            self.tokens.clone_from(&choice.tokens);
        }
        if !choice.sparsity.is_empty() {
            self.sparsity.clone_from(&choice.sparsity);
        }
        self.mask = choice.mask.unwrap_or(self.mask);
        Ok(())
    }

    /// Who takes part in addition, for the sake of the mask.
    pub fn for_the_mask(&self) -> &[String] {
        if self.mask == WeightMask::TwoOfFour { &self.two_of_four } else { &[] }
    }

    /// All workloads. Those that share their weights follow one another, so that these are made once.
    pub fn workloads(&self, dtype: Dtype, seed: u64) -> Vec<NamedLinear> {
        // Of four neighbours two are zero: there is no other sparsity.
        let sparsities = if self.mask == WeightMask::TwoOfFour { &[0.5][..] } else { &self.sparsity };
        let mut all = Vec::new();
        for (model, layer) in self.model.iter().flat_map(|model| model.layers.iter().map(move |layer| (model, layer))) {
            for &sparsity in sparsities {
                for &tokens in &self.tokens {
                    let (mask, percent) = (self.mask, 100.0 * sparsity);
                    let weights = WeightsLaw { m: layer.m, k: layer.k, sparsity, mask, dtype, seed };
                    all.push(NamedLinear {
                        name: format!("{} {} {mask} {percent:.0}% n{tokens}", model.name, layer.name),
                        model: model.name.clone(),
                        workload: LinearWorkload { weights, tokens },
                    });
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> LinearGrid {
        let text = r#"
            tokens = [8, 16]
            sparsity = [0.5, 0.7]
            mask = "wanda"
            [[model]]
            name = "opt-30b"
            layers = [{ name = "fc1", m = 28672, k = 7168 }, { name = "fc2", m = 7168, k = 28672 }]
            [[model]]
            name = "llama"
            layers = [{ name = "o", m = 4096, k = 4096 }]
        "#;
        toml::from_str(text).expect("a grid")
    }

    #[test]
    fn a_grid_has_every_layer_at_every_sparsity_and_tokens_last() {
        let all = grid().workloads(Dtype::Bf16, 3);
        assert_eq!(all.len(), 3 * 2 * 2);
        assert_eq!((all[0].name.as_str(), all[0].model.as_str()), ("opt-30b fc1 wanda 50% n8", "opt-30b"));
        assert_eq!(all[1].name, "opt-30b fc1 wanda 50% n16");
        assert_eq!(all[0].workload.weights, all[1].workload.weights);
        let weights = all[5].workload.weights;
        assert_eq!((weights.m, weights.k, weights.seed, weights.dtype), (7168, 28672, 3, Dtype::Bf16));
    }

    #[test]
    fn the_command_line_takes_the_place_of_the_file() {
        let mut chosen = grid();
        let choice = LinearChoice { models: vec!["llama".to_owned()], tokens: vec![64], ..LinearChoice::default() };
        assert_eq!(chosen.choose(&choice), Ok(()));
        let names: Vec<_> = chosen.workloads(Dtype::F16, 1).into_iter().map(|named| named.name).collect();
        assert_eq!(names, ["llama o wanda 50% n64", "llama o wanda 70% n64"]);
        let unknown = LinearChoice { models: vec!["opt".to_owned(), "gpt".to_owned()], ..LinearChoice::default() };
        assert_eq!(grid().choose(&unknown), Err("gpt".to_owned()));
    }

    #[test]
    fn two_of_four_has_one_sparsity() {
        let mut chosen = grid();
        let choice =
            LinearChoice { mask: Some(WeightMask::TwoOfFour), sparsity: vec![0.6, 0.7], ..LinearChoice::default() };
        assert_eq!(chosen.choose(&choice), Ok(()));
        let all = chosen.workloads(Dtype::Bf16, 1);
        assert_eq!(all.len(), 3 * 2);
        assert!(all.iter().all(|named| named.workload.weights.sparsity == 0.5));
        assert_eq!(all[0].name, "opt-30b fc1 2:4 50% n8");
    }
}
