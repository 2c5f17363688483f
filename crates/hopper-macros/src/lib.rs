//! The #[kernel] attribute and the shared-memory derive of hopper-std.
