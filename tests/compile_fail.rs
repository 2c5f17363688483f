//! What the typed machine forbids does not compile: each file of `tests/ui`, with what the compiler says of it.
//!
//! The `.stderr` files quote hopper-std. After an edit there, `TRYBUILD=overwrite cargo test --test compile_fail` writes
//! them again; read the difference: each file fails for the one reason that its first line states.

#[test]
fn what_the_typed_machine_forbids_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
