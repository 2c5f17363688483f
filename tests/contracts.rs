//! What kernel, kept PTX and host must agree on, without a device: specifications, launch bounds, and bytes.

use std::collections::BTreeSet;
use std::path::Path;

use hopper_builder::kept::{Kept, PtxFile};
use hopper_std::KernelSpec;
use hopper_std::spec::MAX_SHARED_BYTES;
use kernels_gpu::bcsr::{self, BLayout, Configuration};

/// Barriers of a stage, in bytes: a full and an empty one.
const BARRIER_BYTES: usize = 16;

/// Every kept file; there is at least one.
fn kept() -> Vec<PtxFile> {
    let kept = Kept::of_workspace(Path::new(env!("CARGO_MANIFEST_DIR")));
    let mut files = kept.read().expect("the kept PTX can be read");
    if cfg!(feature = "ablation") {
        files.extend(kept.of_feature("ablation").read().expect("the kept PTX can be read"));
    }
    assert!(!files.is_empty(), "no PTX is kept");
    files
}

/// Each specification with the PTX of its kernel.
fn kernels() -> impl Iterator<Item = (&'static KernelSpec, String)> {
    let files = kept();
    kernels_gpu::specs().map(move |spec| {
        let file = files.iter().find(|file| file.kernel == spec.name);
        (spec, file.unwrap_or_else(|| panic!("{} has no PTX", spec.name)).text.clone())
    })
}

/// The lines of instructions and directives, without indentation and comments.
fn statements(ptx: &str) -> impl Iterator<Item = &str> {
    ptx.lines().map(|line| line.split("//").next().unwrap_or_default().trim()).filter(|line| !line.is_empty())
}

#[test]
fn every_entry_has_a_specification_and_the_reverse() {
    let specified: Vec<&str> = kernels_gpu::specs().map(|spec| spec.name).collect();
    let unique: BTreeSet<&str> = specified.iter().copied().collect();
    assert_eq!(unique.len(), specified.len(), "two specifications have one name");
    let files = kept();
    let mut entries = BTreeSet::new();
    for file in &files {
        let names: Vec<&str> = statements(&file.text)
            .filter_map(|line| line.strip_prefix(".visible .entry "))
            .map(|rest| rest.trim_end_matches(['(', ')']))
            .collect();
        assert_eq!(names, [file.kernel.as_str()], "{} has one entry, of its own name", file.file_name());
        entries.extend(names);
    }
    assert_eq!(entries, unique, "entries in the PTX (left) and specifications (right)");
}

#[test]
fn launch_bounds_are_those_of_the_specification() {
    for (spec, ptx) in kernels() {
        let found: Vec<&str> = statements(&ptx)
            .filter(|line| {
                [".reqntid", ".maxntid", ".minnctapersm", ".explicitcluster", ".reqnctapercluster"]
                    .iter()
                    .any(|directive| line.starts_with(directive))
            })
            .collect();
        let (threads, blocks) =
            (format!(".reqntid {}, 1, 1", spec.threads), format!(".minnctapersm {}", spec.min_blocks));
        let cluster = format!(".reqnctapercluster {}, 1, 1", spec.cluster);
        let expected = [threads.as_str(), &blocks, ".explicitcluster", &cluster];
        assert_eq!(found, expected[..if spec.cluster > 1 { 4 } else { 2 }], "{}", spec.name);
    }
}

#[test]
fn shared_memory_fits_a_block() {
    for spec in kernels_gpu::specs() {
        assert!(spec.shared_bytes <= MAX_SHARED_BYTES, "{}: {} bytes", spec.name, spec.shared_bytes);
    }
}

/// Calls are inlined and arrays stay in registers: what is left of either is slow, or a panic that ends the launch.
#[test]
fn no_kernel_calls_panics_or_uses_local_memory() {
    for (spec, ptx) in kernels() {
        for line in statements(&ptx) {
            let opcode = line.split_whitespace().find(|word| !word.starts_with('@')).unwrap_or_default();
            let stem = opcode.trim_end_matches(';').split('.').next().unwrap_or_default();
            let forbidden = ["call", "trap"].contains(&stem) || opcode == ".func";
            let local = line.contains(".local") || line.contains("__local_depot");
            assert!(!forbidden && !local, "{}: {line}", spec.name);
        }
    }
}

/// Elements of 16 bits in a box, in bytes.
fn box_bytes([inner, outer]: [u32; 2]) -> usize {
    inner as usize * outer as usize * 2
}

/// Boxes of B that a stage takes, for each of its blocks of A.
fn b_boxes(configuration: &Configuration) -> usize {
    let [inner, outer] = configuration.b_box.map(|extent| extent as usize);
    let (cols, depth) = match configuration.b_layout {
        BLayout::Row => (inner, outer),
        BLayout::Col => (outer, inner),
    };
    assert_eq!(depth, configuration.block_cols, "{}: a box of B is as deep as a block", configuration.spec.name);
    assert!(configuration.tile_n.is_multiple_of(cols), "{}: boxes of B make up a tile", configuration.spec.name);
    configuration.tile_n / cols
}

/// What a block of A and its part of B have, in bytes, times the blocks of a stage.
fn stage_bytes(configuration: &Configuration) -> usize {
    let depth = configuration.block_cols;
    configuration.group * depth * (configuration.block_rows + configuration.tile_n) * 2
}

#[test]
fn boxes_make_up_tiles_and_tiles_make_up_shared_memory() {
    for configuration in bcsr::CONFIGURATIONS {
        let (name, cluster) = (configuration.spec.name, configuration.spec.cluster as usize);
        let a = box_bytes(configuration.a_box) * cluster;
        assert_eq!(a, configuration.block_rows * configuration.block_cols * 2, "{name}: a block of A");
        let b = box_bytes(configuration.b_box) * b_boxes(configuration);
        assert_eq!(configuration.group * (a + b), stage_bytes(configuration), "{name}: a stage");
        // 64 rows of 16 bits for each of two consumers.
        let staging = 2 * 64 * configuration.staging_cols * 2;
        let barriers = (configuration.stages * BARRIER_BYTES).next_multiple_of(1024);
        let shared = configuration.stages * stage_bytes(configuration) + staging + barriers;
        assert_eq!(shared, configuration.spec.shared_bytes as usize, "{name}: shared memory");
    }
}

#[test]
fn the_innermost_extent_of_a_box_is_its_swizzles_span() {
    for configuration in bcsr::CONFIGURATIONS {
        for ([inner, _], swizzle) in
            [(configuration.a_box, configuration.a_swizzle), (configuration.b_box, configuration.b_swizzle)]
        {
            // As CUtensorMapSwizzle numbers them.
            let span = [16, 32, 64, 128][swizzle as usize];
            assert_eq!(inner * 2, span, "{}: swizzle {swizzle}", configuration.spec.name);
        }
    }
}

/// One announcement of bytes in a kernel, and what the copies up to the next one bring.
#[derive(Debug, PartialEq, Eq)]
struct Transaction {
    expected: usize,
    copied: usize,
}

/// Reads the transactions of a kernel: the constant that each `expect_tx` takes, and the copies on its barrier.
fn transactions(configuration: &Configuration, ptx: &str) -> Vec<Transaction> {
    let mut found: Vec<(&str, Transaction)> = Vec::new();
    let lines: Vec<&str> = statements(ptx).collect();
    for (index, line) in lines.iter().enumerate() {
        if line.starts_with("mbarrier.arrive.expect_tx") {
            let (_, operands) = line.split_once('[').expect("an address");
            let (barrier, bytes) = operands.trim_end_matches(';').split_once("], ").expect("a number of bytes");
            let constant = lines[..index].iter().rev().find_map(|line| {
                let (target, value) = line.strip_prefix("mov.b32")?.trim().split_once(", ")?;
                (target == bytes).then(|| value.trim_end_matches(';').parse().ok()).flatten()
            });
            let expected = constant.unwrap_or_else(|| panic!("{}: {bytes} is no constant", configuration.spec.name));
            found.push((barrier, Transaction { expected, copied: 0 }));
        } else if line.starts_with("cp.async.bulk.tensor") {
            let (barrier, transaction) = found.last_mut().expect("bytes are announced before they are copied");
            assert!(line.contains(&format!("[{barrier}]")), "{}: another barrier: {line}", configuration.spec.name);
            // Every block of a cluster copies its share of A to all of them.
            transaction.copied += match line.contains(".tensor.3d") {
                true if line.contains(".multicast") => {
                    box_bytes(configuration.a_box) * configuration.spec.cluster as usize
                }
                true => box_bytes(configuration.a_box),
                // The panels are filled in a loop.
                false => box_bytes(configuration.b_box) * configuration.panels,
            };
        }
    }
    found.into_iter().map(|(_, transaction)| transaction).collect()
}

/// In the compiled code itself: a barrier that expects another number of bytes than come never completes.
#[test]
fn barriers_expect_the_bytes_that_are_copied() {
    for (spec, ptx) in kernels() {
        let Some(configuration) = bcsr::CONFIGURATIONS.iter().find(|c| c.spec.name == spec.name) else { continue };
        let transactions = transactions(configuration, &ptx);
        assert!(!transactions.is_empty(), "{}: no transaction", spec.name);
        let bytes = stage_bytes(configuration);
        for transaction in transactions {
            assert_eq!(transaction, Transaction { expected: bytes, copied: bytes }, "{}", spec.name);
        }
    }
}
