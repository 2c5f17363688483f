//! The Matrix Market reader: every departure from the plain file that real files are known for.

use std::collections::BTreeMap;
use std::fs;

use hopper_sparse::formats::Axis;
use hopper_sparse::io::IoError;
use hopper_sparse::io::matrix_market::{
    BannerWord, ComplexPolicy, ExplicitZeros, Field, ForeignFile, Format, Loaded, MatrixMarketError, ReadOptions,
    Symmetry, read, read_bytes, read_reporting,
};
use hopper_sparse::{bf16, f16};

/// Reads the text of a file behind its banner's first two words.
fn load_with(text: &str, options: &ReadOptions) -> Result<Loaded<f64>, (u64, MatrixMarketError)> {
    read_bytes(format!("%%MatrixMarket matrix {text}").as_bytes(), options)
}

fn load(text: &str) -> Result<Loaded<f64>, (u64, MatrixMarketError)> {
    load_with(text, &ReadOptions::default())
}

/// The entries of a good file, from 1, duplicates summed.
fn entries(text: &str) -> Vec<(u32, u32, f64)> {
    entries_of(&load(text).unwrap_or_else(|(line, error)| panic!("line {line}: {error}\n{text}")))
}

fn entries_of(loaded: &Loaded<f64>) -> Vec<(u32, u32, f64)> {
    let mut map = BTreeMap::new();
    let matrix = &loaded.matrix;
    for ((&row, &col), &value) in matrix.row_indices().iter().zip(matrix.col_indices()).zip(matrix.values()) {
        map.entry((row + 1, col + 1)).and_modify(|sum| *sum += value).or_insert(value);
    }
    map.into_iter().map(|((row, col), value)| (row, col, value)).collect()
}

/// The line and the sentence of a refusal.
fn refusal(text: &str) -> (u64, String) {
    let (line, error) = load(text).expect_err("the file is wrong");
    (line, error.to_string())
}

#[test]
fn general_files_are_read_as_they_stand() {
    assert_eq!(
        entries("coordinate real general\n2 3 3\n1 1 1.5\n2 3 -2e3\n1 2 .5\n"),
        [(1, 1, 1.5), (1, 2, 0.5), (2, 3, -2000.0)]
    );
    assert_eq!(entries("coordinate real general\n0 0 0\n"), []);
    assert_eq!(entries("coordinate real general\n5 4 0"), []);
}

#[test]
fn symmetric_files_are_mirrored_and_their_diagonal_is_not() {
    let expected = [(1, 1, 1.0), (1, 2, 2.0), (1, 3, 4.0), (2, 1, 2.0), (3, 1, 4.0)];
    for triangle in ["2 1 2\n3 1 4", "1 2 2\n1 3 4", "1 2 2\n3 1 4"] {
        assert_eq!(entries(&format!("coordinate real symmetric\n3 3 3\n1 1 1\n{triangle}\n")), expected, "{triangle}");
    }
    assert_eq!(
        entries("coordinate real symmetric\n2 2 2\n1 2 3\n2 1 4\n"),
        [(1, 2, 7.0), (2, 1, 7.0)],
        "both triangles stored: each is mirrored, and what coincides adds up"
    );
    assert_eq!(
        load("coordinate real symmetric\n2 3 1\n2 1 1\n"),
        Err((2, MatrixMarketError::NotSquare { symmetry: Symmetry::Symmetric, num_rows: 2, num_cols: 3 }))
    );
}

#[test]
fn skew_symmetric_files_change_the_sign() {
    assert_eq!(
        entries("coordinate real skew-symmetric\n3 3 2\n2 1 5\n1 3 -2\n"),
        [(1, 2, -5.0), (1, 3, -2.0), (2, 1, 5.0), (3, 1, 2.0)]
    );
    assert_eq!(
        load("coordinate integer skew-symmetric\n3 3 2\n2 1 5\n2 2 1\n"),
        Err((4, MatrixMarketError::SkewDiagonal { index: 2 }))
    );
    assert_eq!(entries("coordinate real skew-symmetric\n3 3 1\n2 2 0\n"), [(2, 2, 0.0)]);
    assert_eq!(
        entries("array real skew-symmetric\n3 3\n1\n2\n3\n"),
        [(1, 2, -1.0), (1, 3, -2.0), (2, 1, 1.0), (2, 3, -3.0), (3, 1, 2.0), (3, 2, 3.0)]
    );
}

#[test]
fn complex_files_are_refused_or_projected() {
    let real_part = ReadOptions { complex: ComplexPolicy::RealPart, ..ReadOptions::default() };
    let general = "coordinate complex general\n2 2 2\n1 2 3 4\n2 1 5 -6\n";
    assert_eq!(load(general), Err((2, MatrixMarketError::Complex)));
    assert_eq!(entries_of(&load_with(general, &real_part).expect("good")), [(1, 2, 3.0), (2, 1, 5.0)]);
    let hermitian = "coordinate complex hermitian\n2 2 2\n1 1 1 0\n2 1 5 -6\n";
    assert_eq!(load(hermitian), Err((2, MatrixMarketError::Complex)));
    // conj(5 - 6i) has the same real part.
    assert_eq!(entries_of(&load_with(hermitian, &real_part).expect("good")), [(1, 1, 1.0), (1, 2, 5.0), (2, 1, 5.0)]);
    let array = "array complex general\n2 1\n1 2\n0 9\n";
    assert_eq!(entries_of(&load_with(array, &real_part).expect("good")), [(1, 1, 1.0)]);
    let short = load_with("coordinate complex general\n2 2 1\n1 2 3\n", &real_part).expect_err("no imaginary part");
    assert_eq!(short.1.to_string(), "the line has 3 words, but lines of `coordinate complex` have 4");
    let bad = load_with("coordinate complex general\n2 2 1\n1 2 3 i\n", &real_part).expect_err("no number");
    assert_eq!((bad.0, bad.1.to_string()), (3, "expected a number, found `i`".to_owned()));
}

#[test]
fn words_that_contradict_each_other_are_refused() {
    for (text, reason) in [
        ("array pattern general", "an array lists values, and a pattern has none"),
        ("coordinate pattern skew-symmetric", "a pattern is general or symmetric"),
        ("coordinate pattern hermitian", "a pattern is general or symmetric"),
        ("coordinate real hermitian", "only a complex matrix is hermitian"),
        ("coordinate integer hermitian", "only a complex matrix is hermitian"),
        ("array real hermitian", "only a complex matrix is hermitian"),
    ] {
        assert_eq!(
            refusal(&format!("{text}\n1 1 1\n")),
            (1, format!("`{text}` contradicts itself: {reason}")),
            "{text}"
        );
    }
}

#[test]
fn pattern_entries_are_one() {
    assert_eq!(entries("coordinate pattern general\n2 2 2\n1 2\n2 1\n"), [(1, 2, 1.0), (2, 1, 1.0)]);
    assert_eq!(entries("coordinate pattern symmetric\n2 2 1\n2 1"), [(1, 2, 1.0), (2, 1, 1.0)]);
    assert_eq!(
        refusal("coordinate pattern general\n2 2 1\n1 2 1\n"),
        (3, "the line has 3 words, but lines of `coordinate pattern` have 2".to_owned())
    );
}

#[test]
fn integer_entries_are_whole() {
    assert_eq!(
        entries("coordinate integer general\n2 2 3\n1 1 -7\n1 2 +9007199254740993\n2 2 12345678901234567890123\n"),
        [(1, 1, -7.0), (1, 2, 9_007_199_254_740_992.0), (2, 2, 1.234_567_890_123_456_8e22)]
    );
    let zero = load("coordinate integer general\n1 1 1\n1 1 -0\n").expect("good");
    assert_eq!(zero.matrix.values()[0].to_bits(), (-0.0_f64).to_bits());
    for word in ["1.0", "1e3", "nan", "-", "0x10"] {
        assert_eq!(
            refusal(&format!("coordinate integer general\n2 2 1\n1 2 {word}\n")),
            (3, format!("expected an integer, as the banner says, found `{word}`"))
        );
    }
}

#[test]
fn arrays_are_read_column_by_column() {
    assert_eq!(
        entries("array real general\n2 3\n1\n2\n3\n4\n0\n-0\n"),
        [(1, 1, 1.0), (1, 2, 3.0), (2, 1, 2.0), (2, 2, 4.0), (2, 3, -0.0)]
    );
    assert_eq!(
        entries("array integer symmetric\n3 3\n1\n2\n3\n4\n5\n6\n"),
        [
            (1, 1, 1.0),
            (1, 2, 2.0),
            (1, 3, 3.0),
            (2, 1, 2.0),
            (2, 2, 4.0),
            (2, 3, 5.0),
            (3, 1, 3.0),
            (3, 2, 5.0),
            (3, 3, 6.0)
        ]
    );
    assert_eq!(entries("array real general\n0 3\n"), []);
    assert_eq!(entries("array real skew-symmetric\n1 1\n"), []);
    assert_eq!(
        load("array real general\n2 2\n1\n2\n3\n"),
        Err((5, MatrixMarketError::TooFew { expected: 4, found: 3 }))
    );
    assert_eq!(load("array real general\n1 2\n1\n2\n3\n"), Err((5, MatrixMarketError::TooMany { expected: 2 })));
    assert_eq!(load("array real general\n1 2\n1\n2\n0\n"), Err((5, MatrixMarketError::TooMany { expected: 2 })));
    assert_eq!(
        refusal("array real general\n2 1\n1 1 1\n2\n"),
        (3, "the line has 3 words, but lines of `array real` have 1".to_owned())
    );
    assert_eq!(
        refusal("array real general\n2 2 4\n1\n"),
        (2, "expected two numbers (rows, columns), found `2 2 4`".to_owned())
    );
}

#[test]
fn indices_count_from_one() {
    for kind in ["real", "integer"] {
        let at = |line: &str| load(&format!("coordinate {kind} general\n3 2 1\n{line} 1\n"));
        assert_eq!(at("0 1"), Err((3, MatrixMarketError::IndexZero { axis: Axis::Row })));
        assert_eq!(at("1 0"), Err((3, MatrixMarketError::IndexZero { axis: Axis::Column })));
        for (line, sentence) in [
            ("4 1", "the row index is `4`, but the matrix has 3 rows"),
            ("1 3", "the column index is `3`, but the matrix has 2 columns"),
            ("4294967297 1", "the row index is `4294967297`, but the matrix has 3 rows"),
            ("18446744073709551617 1", "the row index is `18446744073709551617`, but the matrix has 3 rows"),
            ("-1 1", "expected a row index, found `-1`"),
            ("1.0 1", "expected a row index, found `1.0`"),
            ("1 b", "expected a column index, found `b`"),
        ] {
            let (at, error) = at(line).expect_err("out of range");
            assert_eq!((at, error.to_string()), (3, sentence.to_owned()));
        }
    }
    let sentence = MatrixMarketError::IndexZero { axis: Axis::Row }.to_string();
    assert!(sentence.contains("counts from 1") && sentence.contains("from 0"), "{sentence}");
    assert_eq!(load("coordinate REAL symmetric 0-base\n3 3 1\n1 1 1\n"), Err((1, MatrixMarketError::ZeroBased)));
}

#[test]
fn duplicates_add_up() {
    let loaded = load("coordinate real general\n2 2 4\n2 2 1\n1 1 5\n2 2 10\n2 2 100\n").expect("good");
    assert_eq!(loaded.matrix.num_entries(), 4, "kept until they are converted");
    let csr = loaded.matrix.to_csr();
    assert_eq!((csr.col_indices(), csr.values()), ([0, 1].as_slice(), [5.0, 111.0].as_slice()));
}

#[test]
fn explicit_zeros_are_kept_or_dropped() {
    let text = "coordinate real symmetric\n3 3 4\n1 1 0\n2 1 -0.0\n3 1 0e5\n3 3 1\n";
    let kept = load(text).expect("good");
    assert_eq!((kept.matrix.to_csr().num_entries(), kept.dropped_zeros), (6, 0));
    assert!(kept.matrix.values().iter().any(|value| value.to_bits() == (-0.0_f64).to_bits()));
    let dropped = load_with(text, &ReadOptions { zeros: ExplicitZeros::Drop, ..ReadOptions::default() }).expect("good");
    assert_eq!((dropped.matrix.to_csr().num_entries(), dropped.dropped_zeros), (1, 3));
    assert_eq!(dropped.header.num_stored, 4);
}

#[test]
fn blank_lines_and_comments_stand_anywhere() {
    let expected = entries("coordinate real general\n2 2 2\n1 1 1\n2 2 2\n");
    for text in [
        "coordinate real general\n\n% a\n%\n2 2 2\n1 1 1\n2 2 2\n",
        "coordinate real general\n2 2 2\n\n  \n% a\n1 1 1\n\t\n  % b\n2 2 2\n\n% c\n",
        "coordinate real general\n  2\t2   2  \n  1 \t 1  1  \n2 2 2",
        "coordinate real general\r\n%\r\n\r\n2 2 2\r\n1 1 1\r\n\r\n2 2 2\r\n",
        "coordinate real general\r\n2 2 2\r\n1 1 1\r\n2 2 2\r",
    ] {
        assert_eq!(entries(text), expected, "{text:?}");
    }
    for kind in ["array real general\n%\n1 2\n\n1\n% x\n2\n", "coordinate integer general\n1 2 2\n%\n1 1 1\n\n1 2 2\n"]
    {
        assert_eq!(entries(kind), [(1, 1, 1.0), (1, 2, 2.0)], "{kind:?}");
    }
    let (line, _) = refusal("coordinate real general\r\n%\n\n2 2 2\n%\n1 1 1\n\n2 x 1\n");
    assert_eq!(line, 8, "comments and blank lines count as lines");
}

#[test]
fn banners_vary() {
    let read = |text: &str| read_bytes::<f64>(text.as_bytes(), &ReadOptions::default());
    for banner in [
        "%%matrixmarket MATRIX Coordinate REAL General",
        "%%MATRIXMARKET matrix coordinate real general \t ",
        "%%MatrixMarket   matrix\tcoordinate real general",
        "%%MatrixMarket matrix coordinate real general % written by hand",
        "\u{feff}%%MatrixMarket matrix coordinate real general\r",
        "\n\n%%MatrixMarket matrix coordinate real general",
    ] {
        let loaded =
            read(&format!("{banner}\n1 1 1\n1 1 3\n")).unwrap_or_else(|(_, error)| panic!("{banner}: {error}"));
        assert_eq!(loaded.matrix.values(), [3.0]);
        assert_eq!(loaded.header.banner.symmetry, Symmetry::General);
    }
    let refuse = |text: &str| read(text).expect_err("a wrong banner");
    assert_eq!(
        refuse("%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 3\n"),
        (1, MatrixMarketError::OnePercent)
    );
    assert!(MatrixMarketError::OnePercent.to_string().contains("one `%`"));
    for (text, sentence) in [
        ("3 3 1\n1 1 1\n", "expected a banner such as `%%MatrixMarket matrix coordinate real general`, found `3 3 1`"),
        ("%%MatrixMarket\n", "the banner ends where `matrix` is expected"),
        (
            "%%MatrixMarket matrix coordinate real\n",
            "the banner ends where `general`, `symmetric`, `skew-symmetric` or `hermitian` is expected",
        ),
        ("%%MatrixMarket vector coordinate real general\n", "expected `matrix` in the banner, found `vector`"),
        ("%%MatrixMarket matrix list real general\n", "expected `coordinate` or `array` in the banner, found `list`"),
        (
            "%%MatrixMarket matrix array float general\n",
            "expected `real`, `integer`, `complex` or `pattern` in the banner, found `float`",
        ),
    ] {
        let (line, error) = refuse(text);
        assert_eq!((line, error.to_string()), (1, sentence.to_owned()));
    }
    let (_, unknown) = refuse("%%MatrixMarket matrix array real lower\n");
    assert!(matches!(unknown, MatrixMarketError::BannerWord { word: BannerWord::Symmetry, .. }), "{unknown:?}");
}

#[test]
fn counts_are_checked() {
    assert_eq!(
        load("coordinate real general\n2 2 3\n1 1 1\n2 2 2\n"),
        Err((4, MatrixMarketError::TooFew { expected: 3, found: 2 }))
    );
    assert_eq!(
        load("coordinate real general\n2 2 1\n1 1 1\n2 2 2\n"),
        Err((4, MatrixMarketError::TooMany { expected: 1 }))
    );
    assert_eq!(
        refusal("coordinate real general\n2 2 3\n1 1 1\n2 2").1,
        "the line has 2 words, but lines of `coordinate real` have 3",
        "truncated inside a line"
    );
    assert_eq!(load("coordinate real general\n% only comments\n"), Err((2, MatrixMarketError::NoSizes)));
    for sizes in ["2 2", "2 2 1 1", "two 2 1", "-2 2 1", "2.0 2 1"] {
        assert_eq!(
            refusal(&format!("coordinate real general\n{sizes}\n1 1 1\n")),
            (2, format!("expected three numbers (rows, columns, entries), found `{sizes}`"))
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn rows_that_memory_cannot_hold_are_refused() {
    use hopper_sparse::formats::FormatError;

    const LIMITED: &str = "HOPPER_SPARSE_TEST_IN_8_GIB";
    let text = |num_rows: u64| format!("coordinate real general\n{num_rows} 4 3\n1 1 1\n2 2 1\n3 4 1\n");
    let (line, sentence) = refusal(&text(1_000_000_000_000));
    assert_eq!((line, sentence.contains("but at most 4294967295 are supported")), (2, true), "{sentence}");
    if std::env::var_os(LIMITED).is_some() {
        let error = load(&text(u32::MAX.into())).expect("well formed").matrix.try_to_csr().expect_err("too many rows");
        assert_eq!(error, FormatError::OutOfMemory { bytes: 3 * 8 * (1 << 32) + 3 * 12 });
        return;
    }
    // Some machines have the 100 GB. A process that may have 8 GiB has not.
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -v 8388608 && exec \"$0\" --exact rows_that_memory_cannot_hold_are_refused"])
        .arg(std::env::current_exe().expect("this program"))
        .env(LIMITED, "1")
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn sizes_past_32_bits_are_refused_and_counts_past_32_bits_are_not() {
    for (sizes, sentence) in [
        ("4294967296 1 1", "the matrix has `4294967296` rows, but at most 4294967295 are supported"),
        (
            "1 99999999999999999999999 1",
            "the matrix has `99999999999999999999999` columns, but at most 4294967295 are supported",
        ),
        (
            "1 1 18446744073709551616",
            "the matrix has `18446744073709551616` entries, but at most 18446744073709551615 are supported",
        ),
    ] {
        assert_eq!(refusal(&format!("coordinate real general\n{sizes}\n1 1 1\n")), (2, sentence.to_owned()));
    }
    // More entries than 32 bits count, and than the file can hold: nothing is reserved for them.
    assert_eq!(
        load("coordinate real general\n4294967295 4294967295 18446744073709551615\n4294967295 4294967295 1\n"),
        Err((3, MatrixMarketError::TooFew { expected: u64::MAX, found: 1 }))
    );
    assert_eq!(
        load("array real symmetric\n4294967295 4294967295\n1\n"),
        Err((3, MatrixMarketError::TooFew { expected: (u64::from(u32::MAX) << 32) / 2, found: 1 }))
    );
}

#[test]
fn unusual_numbers_are_read() {
    let read = |word: &str| entries(&format!("coordinate real general\n1 1 1\n1 1 {word}\n"))[0].2;
    for word in ["inf", "Inf", "+INF", "infinity", "1e400"] {
        assert_eq!(read(word), f64::INFINITY, "{word}");
    }
    assert_eq!(read("-inf"), f64::NEG_INFINITY);
    for word in ["nan", "NaN", "-nan", "NAN"] {
        assert!(read(word).is_nan(), "{word}");
    }
    for (word, value) in [
        ("1.0D+02", 100.0),
        ("-2.5d-1", -0.25),
        ("+3", 3.0),
        ("4.", 4.0),
        ("5E-324", 5e-324),
        ("0.1000000000000000055511151231257827", 0.1),
        ("9007199254740993", 9_007_199_254_740_992.0),
        ("1.7976931348623157e+308", f64::MAX),
    ] {
        assert_eq!(read(word), value, "{word}");
    }
    for word in ["1.0.0", "1,5", "e5", ".", "1e", "--1", "0x1p3", "nanny"] {
        assert_eq!(
            refusal(&format!("coordinate real general\n1 1 1\n1 1 {word}\n")),
            (3, format!("expected a number, found `{word}`"))
        );
    }
    let narrow = read_bytes::<f16>(
        b"%%MatrixMarket matrix coordinate real general\n1 2 2\n1 1 65536\n1 2 0.1\n",
        &ReadOptions::default(),
    );
    assert_eq!(narrow.expect("good").matrix.values(), [f16::INFINITY, f16::from_f64(0.1)]);
    let brain = read_bytes::<bf16>(
        b"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 0.1\n",
        &ReadOptions::default(),
    );
    assert_eq!(brain.expect("good").matrix.values(), [bf16::from_f64(0.1), bf16::from_f64(-0.1)]);
}

#[test]
fn what_is_not_matrix_market_is_named() {
    let read = |bytes: &[u8]| read_bytes::<f64>(bytes, &ReadOptions::default()).expect_err("not Matrix Market").1;
    assert_eq!(read(b""), MatrixMarketError::Empty);
    assert_eq!(read(b"\n \n"), MatrixMarketError::Empty);
    let mut tar = b"cora/cora.mtx\0".to_vec();
    tar.resize(257, 0);
    tar.extend_from_slice(b"ustar\x0000\n%%MatrixMarket");
    for (bytes, file) in [
        (b"%PDF-1.7\n%\xe2\xe3\n".as_slice(), ForeignFile::Pdf),
        (b"PK\x03\x04\x14\0", ForeignFile::Zip),
        (&tar, ForeignFile::Tar),
        (b"\x89HDF\r\n\x1a\n", ForeignFile::Hdf5),
        (b"MATLAB 5.0 MAT-file, Platform", ForeignFile::Matlab),
        (b"\x93NUMPY\x01\0", ForeignFile::Numpy),
        (b"\n<!DOCTYPE html>\n", ForeignFile::Html),
        (b"\x7fELF\x02\x01\x01\0", ForeignFile::Binary),
    ] {
        assert_eq!(read(bytes), MatrixMarketError::Foreign(file));
    }
    // A Harwell-Boeing file begins with a title.
    assert!(matches!(read(b"1SYMMETRIC STRUCTURE, JAGMESH1          JAGMESH1\n"), MatrixMarketError::NoBanner { .. }));
    let quoted = read(format!("\u{1b}[31m{}", "x".repeat(99)).as_bytes()).to_string();
    assert!(quoted.ends_with("found `\\u{1b}[31mxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...`"), "{quoted}");
}

#[test]
fn files_that_cannot_be_read_give_a_sentence() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    let read = |name: &str| read::<f64>(path(name), &ReadOptions::default()).expect_err("a bad file");
    let starts = |name: &str, what: &str| {
        let sentence = read(name).to_string();
        let expected = what.replace("PATH", &path(name).display().to_string());
        assert!(sentence.starts_with(&expected), "{sentence}\n{expected}");
    };
    starts("missing.mtx", "cannot open PATH: ");
    fs::create_dir(path("folder.mtx")).expect("a folder");
    starts("folder.mtx", "PATH is a directory, not a file");
    fs::write(path("empty.mtx"), "").expect("written");
    starts("empty.mtx", "PATH: the file is empty");
    fs::write(path("zero.mtx"), "%%MatrixMarket matrix coordinate real general\n1 1 1\n0 0 1\n").expect("written");
    starts("zero.mtx", "PATH, line 3: the row index is 0");
    fs::write(path("paper.mtx"), b"%PDF-1.4\n\0\0").expect("written");
    starts("paper.mtx", "PATH, line 1: this is a PDF document");
    fs::write(path("endless.mtx"), vec![b'x'; 3 << 20]).expect("written");
    starts("endless.mtx", "PATH, line 1: expected a banner");
    let mut endless = b"%%MatrixMarket matrix coordinate real general\n1 1 1\n".to_vec();
    endless.resize(3 << 20, b'7');
    fs::write(path("endless2.mtx"), endless).expect("written");
    starts("endless2.mtx", "PATH, line 3: the line has more than 1048576 bytes");
    fs::write(path("cut.mtx.gz"), [0x1f, 0x8b, 8, 0, 0]).expect("written");
    starts("cut.mtx.gz", "cannot decompress PATH: ");
    assert!(matches!(read("missing.mtx"), IoError::System { .. }));
}

#[test]
fn pieces_of_a_file_are_joined_and_progress_is_reported() {
    // Several pieces, whose borders fall anywhere in a line.
    let count = 200_000;
    let mut text = format!("%%MatrixMarket matrix coordinate real general\n% c\n{count} 7 {count}\n");
    for index in 0..count {
        text += &format!("{} {} {}\n", index + 1, index % 7 + 1, index as f64 / 8.0);
    }
    let text = text.trim_end();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("long.mtx");
    fs::write(&path, text).expect("written");
    let mut seen = Vec::new();
    let from_file =
        read_reporting::<f64>(&path, &ReadOptions::default(), &mut |progress| seen.push(progress)).expect("good");
    assert_eq!(Ok(from_file), read_bytes(text.as_bytes(), &ReadOptions::default()));
    assert!(seen.len() > 2 && seen.is_sorted_by_key(|progress| progress.bytes_done), "{seen:?}");
    let last = seen[seen.len() - 1];
    assert_eq!((last.bytes_done, last.bytes_total), (text.len() as u64, text.len() as u64));
    fs::write(&path, format!("{text}\n1 8 1\n")).expect("written");
    match read::<f64>(&path, &ReadOptions::default()) {
        Err(IoError::MatrixMarket {
            line, error: MatrixMarketError::IndexOutOfRange { axis, found, size }, ..
        }) => {
            assert_eq!((line, axis, found.to_string().as_str(), size), (count + 4, Axis::Column, "`8`", 7));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn headers_are_handed_on() {
    let header = load("coordinate pattern symmetric\n3 3 2\n1 1\n2 1\n").expect("good").header;
    assert_eq!((header.num_rows, header.num_cols, header.num_stored), (3, 3, 2));
    let banner = header.banner;
    assert_eq!(
        (banner.format, banner.field, banner.symmetry),
        (Format::Coordinate, Field::Pattern, Symmetry::Symmetric)
    );
}
