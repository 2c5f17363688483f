//! What is written is read back, and a file appears whole or not at all.

use std::fs;
use std::path::Path;

use hopper_sparse::element::Element;
use hopper_sparse::formats::{Coo, Csr};
use hopper_sparse::io::matrix_market::{Compression, Loaded, ReadOptions, WriteOptions, read, read_bytes, write};
use hopper_sparse::io::{Existing, IoError};
use hopper_sparse::{bf16, f16};
use proptest::prelude::*;

fn sample<T: Element>() -> Csr<T> {
    let values = [-0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, 1.0 / 3.0, -1e-7, 65504.0, f64::NAN];
    let mut coo = Coo::new(5, 9).expect("a small matrix");
    for (index, value) in values.into_iter().enumerate() {
        coo.push(index % 4, index, T::from_f64(value)).expect("in range");
    }
    coo.to_csr()
}

/// The bits of each value; each NaN counts as the same.
fn bits<T: Element>(values: &[T]) -> Vec<u64> {
    values
        .iter()
        .map(|value| value.to_f64())
        .map(|value| if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() })
        .collect()
}

fn comes_back<T: Element>(name: &str, compression: Compression) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(name);
    let matrix = sample::<T>();
    write(&path, matrix.view(), &WriteOptions { compression, ..WriteOptions::default() }).expect("written");
    let back = read::<T>(&path, &ReadOptions::default()).expect("good").matrix.to_csr();
    assert_eq!(back.pattern(), matrix.pattern());
    assert_eq!(bits(back.values()), bits(matrix.values()));
    assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1, "no temporary file is left");
}

#[test]
fn matrices_of_every_type_come_back() {
    comes_back::<f64>("a.mtx", Compression::ByName);
    comes_back::<f32>("a.mtx", Compression::ByName);
    comes_back::<f16>("a.mtx", Compression::Plain);
    comes_back::<bf16>("a.mtx", Compression::ByName);
    comes_back::<f32>("a.mtx.gz", Compression::ByName);
    comes_back::<f64>("a.mtx.GZ", Compression::ByName);
    // The bytes of a file tell how to read it, not its name.
    comes_back::<f64>("a.mtx", Compression::Gzip);
    comes_back::<f64>("a.mtx.gz", Compression::Plain);
}

#[test]
fn compression_is_what_was_asked_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, compression, is_gzip) in [
        ("a.mtx", Compression::ByName, false),
        ("b.mtx.gz", Compression::ByName, true),
        ("c.mtx.gz", Compression::Plain, false),
        ("d.mtx", Compression::Gzip, true),
    ] {
        let path = folder.path().join(name);
        write(&path, sample::<f32>().view(), &WriteOptions { compression, ..WriteOptions::default() })
            .expect("written");
        assert_eq!(fs::read(&path).expect("read").starts_with(&[0x1f, 0x8b]), is_gzip, "{name}");
    }
}

#[test]
fn a_gzip_file_cut_short_or_damaged_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.mtx.gz");
    write(&path, sample::<f64>().view(), &WriteOptions::default()).expect("written");
    let whole = fs::read(&path).expect("read");
    for length in [3, 12, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..length]).expect("written");
        let error = read::<f64>(&path, &ReadOptions::default()).expect_err("cut short");
        assert!(error.to_string().starts_with("cannot decompress "), "{length}: {error}");
    }
    let mut damaged = whole.clone();
    let checksum = damaged.len() - 8;
    damaged[checksum] ^= 1;
    fs::write(&path, damaged).expect("written");
    assert!(read::<f64>(&path, &ReadOptions::default()).is_err());
    // Two members, one after the other, are one text.
    fs::write(&path, [whole, gzip(b"% the end\n")].concat()).expect("written");
    assert!(read::<f64>(&path, &ReadOptions::default()).is_ok());
}

fn gzip(text: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).expect("into memory");
    encoder.finish().expect("into memory")
}

#[test]
fn an_existing_file_is_kept_unless_it_may_be_replaced() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.mtx");
    fs::write(&path, "mine").expect("written");
    let matrix = sample::<f32>();
    let error = write(&path, matrix.view(), &WriteOptions::default()).expect_err("the file exists");
    assert!(matches!(error, IoError::Exists { .. }), "{error:?}");
    assert_eq!(error.to_string(), format!("{} exists already", path.display()));
    assert_eq!(fs::read(&path).expect("read"), b"mine");
    let replace = WriteOptions { existing: Existing::Replace, ..WriteOptions::default() };
    write(&path, matrix.view(), &replace).expect("replaced");
    assert!(read::<f32>(&path, &ReadOptions::default()).is_ok());
    assert!(matches!(write(folder.path(), matrix.view(), &replace), Err(IoError::IsDirectory { .. })));
    let nowhere = folder.path().join("missing/a.mtx");
    assert!(matches!(write(&nowhere, matrix.view(), &replace), Err(IoError::System { .. })));
    assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1, "no temporary file is left");
}

#[cfg(unix)]
#[test]
fn a_written_file_has_ordinary_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode();
    let (ours, plain) = (folder.path().join("a.mtx"), folder.path().join("b"));
    write(&ours, sample::<f32>().view(), &WriteOptions::default()).expect("written");
    fs::write(&plain, "").expect("written");
    assert_eq!(mode(&ours), mode(&plain));
}

#[test]
fn the_text_is_what_other_readers_take() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.mtx");
    let matrix = Csr::try_new(2, 3, vec![0, 1, 3], vec![2, 0, 1], vec![1.0_f32, 0.1, -2.5e30]).expect("good");
    write(&path, matrix.view(), &WriteOptions::default()).expect("written");
    assert_eq!(
        fs::read_to_string(&path).expect("text"),
        "%%MatrixMarket matrix coordinate real general\n2 3 3\n1 3 1.0\n2 1 0.1\n2 2 -2.5e30\n"
    );
}

/// The value that a line's last word is read as.
fn value_of<T: Element>(word: &str) -> T {
    let text = format!("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 {word}\n");
    let loaded: Loaded<T> = read_bytes(text.as_bytes(), &ReadOptions::default()).expect("good");
    loaded.matrix.values()[0]
}

proptest! {
    #[test]
    fn any_f64_comes_back(bits_in in any::<u64>(), digits in 0..20_usize) {
        let value = f64::from_bits(bits_in);
        prop_assume!(!value.is_nan());
        for word in [format!("{value:?}"), format!("{value:.17e}"), format!("{value:E}")] {
            prop_assert_eq!(value_of::<f64>(&word).to_bits(), bits_in, "{}", word);
        }
        // Other digits are read as the standard library reads them, in the quick way and in the careful way.
        for word in [format!("{value:.digits$e}"), format!("{:.digits$}", value % 1e9)] {
            let expected: f64 = word.parse().expect("a number");
            prop_assert_eq!(value_of::<f64>(&word).to_bits(), expected.to_bits(), "{}", word);
            // A form feed is a blank that only the careful reader knows.
            prop_assert_eq!(value_of::<f64>(&format!("\u{c} {word}")).to_bits(), expected.to_bits(), "{}", word);
        }
    }

    #[test]
    fn any_narrow_value_comes_back(bits_in in any::<u32>()) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.mtx");
        let options = WriteOptions { existing: Existing::Replace, ..WriteOptions::default() };
        macro_rules! check {
            ($value:expr, $type:ty) => {
                let value: $type = $value;
                let matrix = Csr::try_new(1, 1, vec![0, 1], vec![0], vec![value]).expect("good");
                write(&path, matrix.view(), &options).expect("written");
                let back = read::<$type>(&path, &ReadOptions::default()).expect("good");
                prop_assert_eq!(bits(back.matrix.values()), bits(&[value]));
            };
        }
        check!(f32::from_bits(bits_in), f32);
        check!(f16::from_bits(bits_in as u16), f16);
        check!(bf16::from_bits(bits_in as u16), bf16);
    }
}
