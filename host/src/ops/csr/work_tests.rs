use super::*;
use kernels_gpu::csr::Columns;

use super::super::sharing::RunLength;

fn offsets(lengths: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let mut end = 0;
    let ends = lengths.into_iter().map(|len| {
        end += len;
        end
    });
    core::iter::once(0).chain(ends.collect::<Vec<_>>()).collect()
}

fn work(row_offsets: &[u64], split_log2: u32, order: RowOrder) -> Work {
    let split = RowSplit::after_log2(split_log2).expect("a split");
    let end = row_offsets.last().map_or(0, |&end| end as usize);
    let geometry = Geometry::new(1, 128, Columns::Packed4);
    Work::new(row_offsets, end, RowSharing { split, order, ..RowSharing::default() }, geometry, 0)
        .expect("a size that fits")
}

#[test]
fn no_row_is_long_at_the_length_of_a_part() {
    let row_offsets = offsets([16, 0, 1]);
    let whole = work(&row_offsets, 4, RowOrder::Auto);
    assert!(whole.parts.is_empty() && whole.passes.is_empty() && whole.order.is_none());
    assert_eq!((whole.num_items(), whole.num_workspace_rows), (3, 0));
}

#[test]
fn parts_and_passes_of_a_row() {
    let work = work(&offsets([3, 17, 0, 48]), 4, RowOrder::Auto);
    assert_eq!(work.parts, [[1, 0], [1, 1], [3, 0], [3, 1], [3, 2]]);
    let row = |first, count, row| CombineWork { first, count, destination: CombineDestination::Row(row) };
    assert_eq!(work.passes, [vec![row(0, 2, 1), row(2, 3, 3)]]);
    assert_eq!((work.num_items(), work.num_workspace_rows), (9, 5));
}

/// Each pass adds up to 64 sums; every part is added once and in its order, whatever the number of passes.
#[test]
fn a_row_of_many_parts_takes_passes() {
    for (num_parts, num_passes) in [(2, 1), (64, 1), (65, 2), (4096, 2), (4097, 3), (300_000, 4)] {
        let work = work(&offsets([num_parts * 4, 1, 5]), 2, RowOrder::Direct);
        assert_eq!((work.num_long_rows(), work.passes.len()), (2, num_passes), "{num_parts}");
        let mut sums: Vec<Option<Vec<u64>>> = vec![None; work.num_workspace_rows as usize];
        for (slot, sum) in sums.iter_mut().enumerate().take(work.parts.len()) {
            *sum = Some(vec![slot as u64]);
        }
        let mut rows = Vec::new();
        for item in work.passes.iter().flatten() {
            let parts =
                (item.first..item.first + item.count).flat_map(|slot| sums[slot as usize].take().expect("a sum"));
            let parts: Vec<_> = parts.collect();
            match item.destination {
                CombineDestination::Row(row) => rows.push((row, parts)),
                CombineDestination::Workspace(slot) => sums[slot as usize] = Some(parts),
            }
        }
        rows.sort();
        assert_eq!(rows, [(0, (0..num_parts).collect()), (2, vec![num_parts, num_parts + 1])]);
    }
}

#[test]
fn rows_by_length_are_a_permutation_of_the_short_ones() {
    let lengths: Vec<u64> = (0..50_000_u64).map(|row| row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57).collect();
    let work = work(&offsets(lengths.iter().copied()), 6, RowOrder::ByLength);
    let order = work.order.expect("an order");
    for pair in order.windows(2) {
        let [before, after] = [pair[0], pair[1]].map(|row| (core::cmp::Reverse(class(lengths[row as usize])), row));
        assert!(before < after, "{pair:?}");
    }
    let short: Vec<u32> = (0..50_000).filter(|&row| lengths[row as usize] <= 64).collect();
    let mut sorted = order;
    sorted.sort_unstable();
    assert_eq!(sorted, short);
    assert_eq!(work.parts.len(), 2 * (50_000 - short.len()));
}

#[test]
fn rows_are_ordered_where_it_pays() {
    let ordered = |lengths: Vec<u64>, b_bytes| {
        let row_offsets = offsets(lengths);
        let end = row_offsets.last().map_or(0, |&end| end as usize);
        let geometry = Geometry::new(1, 128, Columns::Packed4);
        let work = Work::new(&row_offsets, end, RowSharing::default(), geometry, b_bytes).expect("a size that fits");
        work.order.is_some()
    };
    // Blocks of four rows: 2 + 2 in each, or 2 + 20 for one of four.
    let equal = |rows| vec![8; rows];
    let mixed = |rows: usize| (0..rows).map(|row| if row % 4 == 0 { 80 } else { 8 }).collect::<Vec<_>>();
    assert!(!ordered(equal(10_000), 0));
    assert!(ordered(mixed(10_000), 0));
    assert!(ordered(mixed(10_000), 1 << 30));
    assert!(!ordered(mixed(1_000), 0), "all blocks run at once");
    // 2 + 5 for one of four: a ratio of 1.47.
    let slightly = (0..10_000).map(|row| if row % 4 == 0 { 20 } else { 8 }).collect::<Vec<_>>();
    assert!(ordered(slightly.clone(), 0));
    assert!(!ordered(slightly, 1 << 30), "B does not stay in the cache");
}

#[test]
fn classes_are_powers_of_two() {
    let classes = [0, 1, 2, 3, 4, 5, 8, 9, 256, 257, u64::from(u32::MAX)].map(class);
    assert_eq!(classes, [0, 1, 2, 3, 3, 4, 4, 5, 9, 10, 33]);
}

#[test]
fn offsets_of_no_matrix_plan_no_part() {
    for (row_offsets, end) in [(&[0, 9, 3, 1000][..], 1000), (&[0, 1 << 60], 4), (&[], 0), (&[0, 5], 4)] {
        let geometry = Geometry::new(1, 128, Columns::Packed4);
        let work = Work::new(row_offsets, end, RowSharing::default(), geometry, 0).expect("no part");
        assert!(work.parts.is_empty() && work.order.is_none(), "{row_offsets:?}");
    }
}

#[test]
fn rows_come_in_runs_where_they_are_short_and_many() {
    let run_of = |len: u64, num_rows: u64, num_cols: u32, sharing: RowSharing| {
        let row_offsets = offsets((0..num_rows).map(|_| len));
        let geometry = Geometry::new(1, num_cols, Columns::Packed4);
        let work = Work::new(&row_offsets, (len * num_rows) as usize, sharing, geometry, 0).expect("a size that fits");
        assert_eq!(work.num_items(), num_rows.div_ceil(1 << work.run_log2) as u32);
        work.run_log2
    };
    let auto = RowSharing::default();
    // A block has four teams of 32 threads or 16 of eight, and there are to be 1024 blocks.
    for (len, num_rows, num_cols, log2) in [
        (7, 1 << 20, 128, 0),
        (6, 1 << 20, 128, 3),
        (0, 1 << 20, 128, 3),
        (6, 1 << 20, 32, 0),
        (5, 1 << 20, 32, 3),
        (3, 32_737, 128, 3),
        (3, 32_736, 128, 0),
        (3, 130_945, 32, 3),
        (3, 130_944, 32, 0),
    ] {
        assert_eq!(run_of(len, num_rows, num_cols, auto), log2, "{num_rows} rows of {len}, {num_cols} columns");
    }
    let eight = RowRun::Rows(RunLength::of_log2(3).expect("a length of runs"));
    assert_eq!(run_of(40, 100, 128, RowSharing { run: eight, ..auto }), 3);
    assert_eq!(run_of(3, 1 << 20, 128, RowSharing { run: RowRun::Single, ..auto }), 0);
    for sharing in [
        RowSharing { order: RowOrder::ByLength, run: eight, ..auto },
        RowSharing { split: RowSplit::NEVER, run: eight, ..auto },
    ] {
        assert_eq!(run_of(3, 1 << 20, 128, sharing), 0);
    }
}
