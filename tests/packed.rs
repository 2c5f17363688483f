//! Packed matrices: saved, loaded, and refused where they are not what they should be.

use std::fs;

use hopper_sparse::element::Element;
use hopper_sparse::formats::{AnyBcsr, BlockShape, Coo, Csr, RowOrder, Wcsr, WindowShape};
use hopper_sparse::io::packed::{
    Kind, PackedInfo, inspect, load_bcsr, load_csr, load_wcsr, save_bcsr, save_csr, save_wcsr,
};
use hopper_sparse::io::{Existing, IoError};
use hopper_sparse::{bf16, f16};

fn sample<T: Element>() -> Csr<T> {
    let mut coo = Coo::new(200, 90).expect("a small matrix");
    for index in 0..500_usize {
        let value = if index == 7 { f64::NAN } else { index as f64 / 16.0 - 3.0 };
        coo.push(index * 37 % 200, index * 11 % 90, T::from_f64(value)).expect("in range");
    }
    coo.to_csr()
}

fn comes_back<T: Element>() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let csr = sample::<T>();
    let path = folder.path().join("a.safetensors");
    save_csr(&path, csr.view(), Existing::Refuse).expect("saved");
    let back = load_csr::<T>(&path).expect("loaded");
    assert_eq!(back.pattern(), csr.pattern());
    assert_eq!(bytemuck::cast_slice::<T, u8>(back.values()), bytemuck::cast_slice::<T, u8>(csr.values()));
    assert_eq!(
        inspect(&path).expect("packed"),
        PackedInfo { kind: Kind::Csr, num_rows: 200, num_cols: 90, dtype: T::DTYPE }
    );
    for shape in BlockShape::ALL {
        let blocks = AnyBcsr::from_csr(csr.view(), shape).expect("small");
        save_bcsr(&path, blocks.view(), Existing::Replace).expect("saved");
        let back = load_bcsr::<T>(&path).expect("loaded");
        let (ours, theirs) = (blocks.view(), back.view());
        assert_eq!(
            (ours.block, ours.row_offsets, ours.col_indices),
            (theirs.block, theirs.row_offsets, theirs.col_indices)
        );
        assert_eq!(bytemuck::cast_slice::<T, u8>(ours.values), bytemuck::cast_slice::<T, u8>(theirs.values));
        assert_eq!(inspect(&path).expect("packed").kind, Kind::Bcsr(shape));
    }
    let reversed = RowOrder::try_new((0..200).rev().collect()).expect("a permutation");
    for shape in WindowShape::ALL {
        let ordered = Wcsr::from_csr_ordered(csr.view(), shape, reversed.clone()).expect("small");
        for windows in [csr.to_wcsr(shape).expect("small"), ordered] {
            save_wcsr(&path, windows.view(), Existing::Replace).expect("saved");
            let back = load_wcsr::<T>(&path).expect("loaded");
            assert_eq!(back.pattern(), windows.pattern());
            assert_eq!(bytemuck::cast_slice::<T, u8>(back.values()), bytemuck::cast_slice::<T, u8>(windows.values()));
            assert_eq!(inspect(&path).expect("packed").kind, Kind::Wcsr(shape));
            assert!(load_csr::<T>(&path).is_err(), "it is no csr matrix");
        }
    }
}

#[test]
fn matrices_of_every_type_come_back() {
    comes_back::<bf16>();
    comes_back::<f16>();
    comes_back::<f32>();
    comes_back::<f64>();
}

#[test]
fn an_empty_matrix_comes_back() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.safetensors");
    let empty = Coo::<f32>::new(0, 0).expect("small").to_csr();
    save_csr(&path, empty.view(), Existing::Refuse).expect("saved");
    assert_eq!(load_csr::<f32>(&path).expect("loaded"), empty);
}

#[test]
fn the_same_matrix_gives_the_same_file_and_its_arrays_are_aligned() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (first, second) = (folder.path().join("a"), folder.path().join("b"));
    save_csr(&first, sample::<bf16>().view(), Existing::Refuse).expect("saved");
    save_csr(&second, sample::<bf16>().view(), Existing::Refuse).expect("saved");
    let bytes = fs::read(&first).expect("read");
    assert_eq!(bytes, fs::read(&second).expect("read"));
    let tensors = safetensors::SafeTensors::deserialize(&bytes).expect("well formed");
    for (name, size) in [("row_offsets", 8), ("col_indices", 4), ("values", 2)] {
        let data = tensors.tensor(name).expect("there").data();
        assert_eq!((data.as_ptr() as usize - bytes.as_ptr() as usize) % size, 0, "{name}");
    }
}

#[test]
fn wrong_files_give_a_sentence() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.safetensors");
    let contains = |what: &str| {
        let error = load_csr::<f32>(&path).expect_err("a wrong file").to_string();
        assert!(error.contains(what), "{error}");
    };
    contains("cannot open");
    fs::write(&path, "").expect("written");
    contains("this is not a complete safetensors file");
    fs::write(&path, "%%MatrixMarket matrix coordinate real general\n").expect("written");
    contains("this is not a complete safetensors file");

    let csr = sample::<f32>();
    save_csr(&path, csr.view(), Existing::Replace).expect("saved");
    let good = fs::read(&path).expect("read");
    assert!(matches!(load_csr::<bf16>(&path), Err(IoError::Packed { .. })));
    assert_eq!(
        load_csr::<bf16>(&path).expect_err("f32").to_string(),
        format!("{}: values of type bf16 are expected, but the file holds f32", path.display())
    );
    assert!(
        load_bcsr::<f32>(&path)
            .expect_err("csr")
            .to_string()
            .contains("a bcsr matrix is expected, but the file holds csr")
    );
    fs::write(&path, &good[..good.len() - 1]).expect("written");
    contains("this is not a complete safetensors file");

    // Edits of equal length leave the header's length right.
    let edit = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let at = good.windows(from.len()).position(|window| window == from.as_bytes()).expect("in the header");
        let mut bytes = good.clone();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        fs::write(&path, bytes).expect("written");
    };
    edit("\"hopper-sparse\"", "\"hopper-parsec\"");
    contains("is not a matrix packed by hopper-sparse");
    edit("\"version\":\"1\"", "\"version\":\"2\"");
    contains("version `2`, but only version 1 is read");
    edit("\"kind\":\"csr\"", "\"kind\":\"csc\"");
    contains("say `csc` for `kind`");
    edit("\"shape\":\"200x90\"", "\"shape\":\"200*90\"");
    contains("say `200*90` for `shape`");
    edit("\"shape\":\"200x90\"", "\"shape\":\"199x90\"");
    contains("`row_offsets` has 201 elements, but 200 are expected");
    edit("\"shape\":\"200x90\"", "\"shape\":\"200x88\"");
    contains("but the matrix has 88 columns");
    edit("\"dtype\":\"f32\"", "\"dtype\":\"f23\"");
    contains("say `f23` for `dtype`");
    edit("\"shape\":\"200x90\"", "\"shapf\":\"200x90\"");
    contains("the metadata do not say `shape`");
    edit("\"col_indices\"", "\"col_indexes\"");
    contains("the tensor `col_indices` is missing");
    edit("\"dtype\":\"U32\"", "\"dtype\":\"I32\"");
    contains("the tensor `col_indices` is I32 with 1 dimensions, but U32 with 1 is expected");
    // The last array of an f32 file is its column indices; 89 is the largest that is good.
    let mut bytes = good.clone();
    let last = bytes.len() - 4;
    bytes[last..].copy_from_slice(&90_u32.to_le_bytes());
    fs::write(&path, bytes).expect("written");
    contains("column index 90, but the matrix has 90 columns");
    assert!(matches!(load_csr::<f32>(folder.path()), Err(IoError::IsDirectory { .. })));
    assert!(matches!(save_csr(&path, csr.view(), Existing::Refuse), Err(IoError::Exists { .. })));
}

#[test]
fn blocks_say_their_shape() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.safetensors");
    let blocks = AnyBcsr::from_csr(sample::<f16>().view(), BlockShape { rows: 128, cols: 64 }).expect("small");
    save_bcsr(&path, blocks.view(), Existing::Refuse).expect("saved");
    let mut bytes = fs::read(&path).expect("read");
    let at = bytes.windows(6).position(|window| window == b"128x64").expect("in the header");
    bytes[at..at + 6].copy_from_slice(b"128x65");
    fs::write(&path, bytes).expect("written");
    let error = load_bcsr::<f16>(&path).expect_err("a shape not offered").to_string();
    assert!(error.contains("say `128x65` for `block`"), "{error}");
}
