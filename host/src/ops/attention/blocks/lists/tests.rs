use super::*;

const EXTENTS: ListExtents = ListExtents { sequences: 1, heads: 2, query_blocks: 2 };

fn lists(full: (&[i32], &[i32]), partial: (&[i32], &[i32])) -> Result<BlockLists, KeyListError> {
    let counted = |(counts, indices): (&[i32], &[i32])| CountedLists { counts: counts.into(), indices: indices.into() };
    BlockLists::try_new(BlockSize::B64, EXTENTS, 5, counted(full), counted(partial))
}

#[test]
fn lists_are_read_up_to_their_counts() {
    let full = (&[2, 0, 1, 1][..], &[4, 0, 9, 9, 3, -7, 0, 0][..]);
    let lists = lists(full, (&[1, 1, 0, 1], &[1, 2, 99, 4])).expect("proper lists");
    assert_eq!(lists.num_blocks(), 7);
    assert_eq!(lists.starts_of(0), [0, 64, 256]);
    assert_eq!(lists.starts_of(1), [128]);
    assert_eq!(lists.starts_of(2), [192]);
    assert_eq!(lists.starts_of(3), [0, 256]);
    assert_eq!((lists.block().tokens(), lists.extents(), lists.num_key_blocks()), (64, EXTENTS, 5));
}

#[test]
fn improper_lists_are_refused_with_the_place() {
    let says = |full: (&[i32], &[i32]), partial: (&[i32], &[i32]), sentence: &str| {
        assert_eq!(lists(full, partial).expect_err("a refusal").to_string(), sentence);
    };
    let none: (&[i32], &[i32]) = (&[], &[]);
    says((&[1, 1, 1], &[0, 0, 0]), none, "there are 3 counts of full blocks, but 4 blocks of queries");
    says(none, (&[0; 4], &[0; 5]), "5 indices of partial blocks cannot be divided among 4 blocks of queries");
    says((&[1, 1, 1, 2], &[0; 4]), none, "query block 1 of head 1 of sequence 0 has 2 full blocks, but room for 1");
    says((&[0, -1, 0, 0], &[0; 4]), none, "query block 1 of head 0 of sequence 0 has -1 full blocks, but room for 1");
    says(
        none,
        (&[1, 1, 1, 0], &[0, 0, 5, 0]),
        "query block 0 of head 1 of sequence 0 lists 5 among its partial blocks, but they are numbered from 0 to less than 5",
    );
    says(
        (&[0, 1, 0, 0], &[0, -2, 0, 0]),
        none,
        "query block 1 of head 0 of sequence 0 lists -2 among its full blocks, but they are numbered from 0 to less than 5",
    );
    says(
        (&[2, 0, 0, 0], &[3, 3, 0, 0, 0, 0, 0, 0]),
        none,
        "query block 0 of head 0 of sequence 0 lists 3 twice, the second time among its full blocks",
    );
    says(
        (&[0, 0, 0, 1], &[0, 0, 0, 2]),
        (&[0, 0, 0, 1], &[0, 0, 0, 2]),
        "query block 1 of head 1 of sequence 0 lists 2 twice, the second time among its partial blocks",
    );
}

#[test]
fn a_mask_and_lists_are_the_same() {
    let mut state = 1u64;
    let mask: Vec<bool> = (0..4 * 5)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 63 == 1
        })
        .collect();
    assert!(mask.contains(&true) && mask.contains(&false));
    for block in [BlockSize::B64, BlockSize::B128] {
        let lists = BlockLists::from_mask(block, EXTENTS, 5, &mask).expect("as many");
        assert_eq!(lists.to_mask(), mask);
        let remade =
            BlockLists::try_new(block, EXTENTS, 5, CountedLists::default(), lists.full.clone()).expect("proper lists");
        assert_eq!(remade.to_mask(), mask);
    }
    let error = BlockLists::from_mask(BlockSize::B64, EXTENTS, 5, &mask[1..]).expect_err("one is missing");
    assert_eq!(error.to_string(), "the mask has 19 elements, but 20 pairs of blocks");
}

#[test]
fn nothing_is_a_list() {
    let extents = ListExtents { sequences: 0, heads: 3, query_blocks: 0 };
    let none = BlockLists::from_mask(BlockSize::B128, extents, 0, &[]).expect("no list");
    assert_eq!((none.num_blocks(), none.to_mask()), (0, vec![]));
    let empty = BlockLists::try_new(BlockSize::B64, EXTENTS, 3, CountedLists::default(), CountedLists::default());
    assert_eq!(empty.expect("empty lists").to_mask(), [false; 12]);
}

#[test]
fn a_pattern_is_a_mask_for_all_heads() {
    let pattern = BcsrPattern::<128, 128>::try_new(300, 500, vec![0, 2, 2, 3], vec![0, 3, 1]).expect("a pattern");
    let lists = BlockLists::from_pattern(&pattern);
    assert_eq!(lists.extents(), ListExtents { sequences: 1, heads: 1, query_blocks: 3 });
    assert_eq!((lists.block(), lists.num_key_blocks()), (BlockSize::B128, 4));
    let [f, t] = [false, true];
    assert_eq!(lists.to_mask(), [t, f, f, t, f, f, f, f, f, t, f, f]);
}

#[test]
fn one_sequence_or_head_stands_for_all() {
    let place = ListPlace { sequence: 2, head: 3, query_block: 4 };
    let row = |sequences, heads| ListExtents { sequences, heads, query_blocks: 6 }.row_of(place);
    assert_eq!((row(1, 1), row(1, 5), row(3, 1), row(3, 5)), (4, 22, 16, 82));
    let extents = ListExtents { sequences: 3, heads: 5, query_blocks: 6 };
    assert_eq!(extents.place(82), place);
}
