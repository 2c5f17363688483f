//! Which tensors are the weights of linear layers inside decoder blocks, by their names.

/// The last word of a linear layer's name, as Llama, Qwen and OPT have them.
const LINEAR: [&str; 10] =
    ["q_proj", "k_proj", "v_proj", "o_proj", "out_proj", "gate_proj", "up_proj", "down_proj", "fc1", "fc2"];

/// Whether a tensor is such a weight: `model.layers.0.mlp.up_proj.weight` is, `lm_head.weight` is not.
pub(super) fn is_linear_weight(name: &str) -> bool {
    let Some(module) = name.strip_suffix(".weight") else { return false };
    let mut words: Vec<&str> = module.split('.').collect();
    let is_linear = words.pop().is_some_and(|word| LINEAR.contains(&word));
    // Blocks are numbered: `layers.0`, or `h.0`.
    is_linear && words.windows(2).any(|pair| !pair[0].is_empty() && pair[1].parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::is_linear_weight;

    #[test]
    fn linear_layers_of_blocks_are_known_by_name() {
        for name in [
            "model.layers.0.self_attn.q_proj.weight",
            "model.layers.31.mlp.down_proj.weight",
            "model.decoder.layers.7.self_attn.out_proj.weight",
            "model.decoder.layers.47.fc1.weight",
        ] {
            assert!(is_linear_weight(name), "{name}");
        }
        for name in [
            "lm_head.weight",
            "model.embed_tokens.weight",
            "model.decoder.project_out.weight",
            "model.layers.0.self_attn.q_proj.bias",
            "model.layers.0.input_layernorm.weight",
            "model.layers.0.self_attn.q_norm.weight",
            "q_proj.weight",
            "fc1.weight",
        ] {
            assert!(!is_linear_weight(name), "{name}");
        }
    }
}
