//! The launch specification that `#[kernel]` leaves in the module.

use super::module::{Item, Module};
use crate::Error;
use std::collections::BTreeMap;
use std::fmt::Write;

/// As `hopper_std::spec::RECORD_PREFIX`.
const PREFIX: &str = "__hopper_spec_";
/// As `hopper_std::spec::RECORD_MAGIC`.
const MAGIC: u32 = 0x4850_5253;
/// 32-bit words of a record.
const WORDS: usize = 8;

/// What a record states about its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchBounds {
    /// Threads of a block, exactly.
    pub threads: u32,
    /// Blocks that must fit a multiprocessor at once.
    pub min_blocks: u32,
    /// Blocks of a cluster, along x.
    pub cluster: u32,
    /// Dynamic shared memory, in bytes.
    pub shared_bytes: u32,
}

impl LaunchBounds {
    /// The directives that stand between an entry's parameters and its body.
    pub(super) fn directives(&self) -> String {
        let Self { threads, min_blocks, cluster, .. } = self;
        let mut text = format!(".reqntid {threads}, 1, 1\n.minnctapersm {min_blocks}\n");
        if *cluster > 1 {
            // Both, as a cluster size fixed in CUDA C++ gives: a launch may leave the size out, but not contradict it.
            let _ = write!(text, ".explicitcluster\n.reqnctapercluster {cluster}, 1, 1\n");
        }
        text
    }
}

/// The records of a module, by kernel.
pub(super) fn take_all(module: &Module) -> Result<BTreeMap<String, LaunchBounds>, Error> {
    let records = module.variables().filter_map(|item| item.name().strip_prefix(PREFIX).map(|kernel| (kernel, item)));
    records
        .map(|(kernel, item)| {
            let bounds = parse(item).ok_or_else(|| Error::BadRecord { kernel: kernel.to_owned() })?;
            Ok((kernel.to_owned(), bounds))
        })
        .collect()
}

pub(super) fn is_record(item: &Item) -> bool {
    item.name().starts_with(PREFIX)
}

/// Reads `.b8 name[32] = {83, 82, ...};` or `.u32 name[8] = {...};`, whose zeros at the end may be left out.
fn parse(item: &Item) -> Option<LaunchBounds> {
    let (declaration, values) = item.text.split_once('=')?;
    let values = values.trim().strip_prefix('{')?.strip_suffix("};")?;
    let values: Vec<u32> = values.split(',').map(|value| value.trim().parse().ok()).collect::<Option<_>>()?;
    let element = declaration.split_whitespace().rfind(|word| word.starts_with('.'))?;
    let mut words = [0u32; WORDS];
    match element {
        ".b8" | ".u8" => {
            for (i, value) in values.iter().enumerate() {
                *words.get_mut(i / 4)? |= u32::from(u8::try_from(*value).ok()?) << (8 * (i % 4));
            }
        }
        ".b32" | ".u32" => words.get_mut(..values.len())?.copy_from_slice(&values),
        _ => return None,
    }
    match words {
        [MAGIC, threads, min_blocks, cluster, shared_bytes, 0, 0, 0]
            if threads > 0 && min_blocks > 0 && cluster > 0 =>
        {
            Some(LaunchBounds { threads, min_blocks, cluster, shared_bytes })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<BTreeMap<String, LaunchBounds>, Error> {
        take_all(&Module::parse(text)?)
    }

    #[test]
    fn the_contract_is_that_of_hopper_std() {
        assert_eq!(PREFIX, hopper_std::spec::RECORD_PREFIX);
        assert_eq!(MAGIC, hopper_std::spec::RECORD_MAGIC);
        let record = hopper_std::KernelSpec::new("k", 384, 2, 4, 200_000).record();
        let text = format!(".visible .global .align 4 .u32 {PREFIX}k[{}] = {{{}}};", record.len(), {
            record.map(|word| word.to_string()).join(", ")
        });
        let bounds = LaunchBounds { threads: 384, min_blocks: 2, cluster: 4, shared_bytes: 200_000 };
        assert_eq!(read(&text).unwrap()["k"], bounds);
    }

    #[test]
    fn bytes_are_little_endian_and_zeros_may_be_left_out() {
        let text = ".global .align 4 .b8 __hopper_spec_k[32] = {83, 82, 80, 72, 0, 4, 0, 0, 1, 0, 0, 0, 1};";
        let bounds = LaunchBounds { threads: 1024, min_blocks: 1, cluster: 1, shared_bytes: 0 };
        assert_eq!(read(text).unwrap()["k"], bounds);
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for values in ["1, 2, 3, 4", "83, 82, 80, 72", "83, 82, 80, 72, 256", "83, 82, 80, 72, x", ""] {
            let text = format!(".global .b8 __hopper_spec_k[32] = {{{values}}};");
            assert!(matches!(read(&text), Err(Error::BadRecord { kernel }) if kernel == "k"), "{values}");
        }
    }
}
