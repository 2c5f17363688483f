//! The `hopper-sparse` command.
fn main() {}
