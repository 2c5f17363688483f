//! Embeds the kernels. Filled by hopper-builder.
fn main() {}
