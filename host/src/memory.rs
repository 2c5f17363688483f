//! Main memory, asked for before work whose size a file or a specification decides.

/// Whether `bytes` can be had at once. What the system refuses here would end the process where it is needed.
///
/// # Errors
/// The bytes wanted. A system that promises more than it has refuses only what the machine could never hold.
pub(crate) fn require_memory(bytes: u128) -> Result<(), u128> {
    let wanted = usize::try_from(bytes).map_err(|_| bytes)?;
    Vec::<u8>::new().try_reserve_exact(wanted).map_err(|_| bytes)
}
