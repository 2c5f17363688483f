use super::*;

const EXTENTS: ListExtents = ListExtents { sequences: 1, heads: 1, query_blocks: 2 };

fn lists(blocks: [&[i32]; 2], columns: [&[i32]; 2]) -> Result<VerticalSlash, KeyListError> {
    let counted = |rows: [&[i32]; 2]| CountedLists::of_rows(&rows.map(<[i32]>::to_vec));
    VerticalSlash::try_new(EXTENTS, 300, counted(blocks), counted(columns))
}

#[test]
fn columns_in_blocks_are_left_out() {
    let lists = lists([&[], &[100, 3]], [&[299, 0], &[2, 3, 66, 67, 99, 100, 163, 164]]).expect("proper lists");
    assert_eq!(lists.keys_of(0), (vec![], vec![0, 299]));
    assert_eq!(lists.keys_of(1), (vec![3, 100], vec![2, 67, 99, 164]));
    assert_eq!(lists.num_blocks_and_columns(), (2, 10));
    assert_eq!((lists.extents(), lists.num_keys()), (EXTENTS, 300));
}

#[test]
fn improper_lists_are_refused_with_the_place() {
    let says = |blocks, columns, sentence: &str| {
        assert_eq!(lists(blocks, columns).expect_err("a refusal").to_string(), sentence);
    };
    says(
        [&[], &[200, 137]],
        [&[], &[]],
        "query block 1 of head 0 of sequence 0 lists blocks from key 137 and from key 200 on, which have keys in common",
    );
    says(
        [&[5, 5], &[]],
        [&[], &[]],
        "query block 0 of head 0 of sequence 0 lists blocks from key 5 and from key 5 on, which have keys in common",
    );
    says(
        [&[], &[]],
        [&[7, 8, 7], &[]],
        "query block 0 of head 0 of sequence 0 lists 7 twice, the second time among its columns",
    );
    says(
        [&[], &[]],
        [&[300], &[]],
        "query block 0 of head 0 of sequence 0 lists 300 among its columns, but they are numbered from 0 to less than 300",
    );
    says(
        [&[], &[-64]],
        [&[], &[]],
        "query block 1 of head 0 of sequence 0 lists -64 among its blocks, but they are numbered from 0 to less than 300",
    );
    assert!(lists([&[0, 64, 128], &[]], [&[], &[]]).is_ok());
}
