//! The lines after the size line.
//!
//! Each line is read twice at most: [`fast_entry`] takes what nearly every line of nearly every file is, and gives up on
//! everything else; [`careful_entry`] then reads the same line word by word, and says what is wrong with it if it
//! finds something. Where the fast reader succeeds, the careful one would have found the same.

use super::error::MatrixMarketError;
use super::header::{Field, Format, Header, Symmetry, integer, words};
use super::{ComplexPolicy, ExplicitZeros, Loaded, ReadOptions};
use crate::element::Element;
use crate::formats::{Axis, Coo};
use crate::io::Excerpt;

/// Fewest bytes that an entry takes, its line break included: bounds what is reserved on the word of a size line.
const MIN_ENTRY_BYTES: u64 = 4;

/// An entry as a line states it, its indices from 1.
#[derive(Clone, Copy)]
struct Entry {
    row: u64,
    col: u64,
    value: f64,
}

/// The entries read so far.
pub(super) struct Entries<T> {
    header: Header,
    zeros: ExplicitZeros,
    matrix: Coo<T>,
    num_read: u64,
    dropped_zeros: u64,
    /// Where the next line of an array belongs.
    array_place: (u32, u32),
}

impl<T: Element> Entries<T> {
    /// Room for what `header` announces, but no more than `num_bytes` of file can hold.
    pub(super) fn new(header: Header, options: &ReadOptions, num_bytes: u64) -> Result<Self, MatrixMarketError> {
        if header.banner.field == Field::Complex && options.complex == ComplexPolicy::Refuse {
            return Err(MatrixMarketError::Complex);
        }
        let mirrored = if header.banner.symmetry == Symmetry::General { 1 } else { 2 };
        let capacity = match header.banner.format {
            Format::Coordinate => header.num_stored.min(num_bytes / MIN_ENTRY_BYTES) * mirrored,
            Format::Array => 0,
        };
        let (num_rows, num_cols) = (header.num_rows as usize, header.num_cols as usize);
        let matrix = Coo::with_capacity(num_rows, num_cols, capacity as usize)
            .unwrap_or_else(|_| unreachable!("the header's sizes are 32 bits wide"));
        let mut entries =
            Self { header, zeros: options.zeros, matrix, num_read: 0, dropped_zeros: 0, array_place: (0, 0) };
        entries.begin_array_column(0);
        Ok(entries)
    }

    /// Reads whole lines, and counts them in `line`, which is the number of the line last read. Where this fails, it
    /// is the number of the line at fault.
    pub(super) fn read(&mut self, lines: &[u8], line: &mut u64) -> Result<(), MatrixMarketError> {
        match (self.header.banner.format, self.header.banner.field) {
            (Format::Coordinate, Field::Real) => self.read_coordinates(lines, line, real),
            (Format::Coordinate, Field::Integer) => self.read_coordinates(lines, line, small_integer),
            (Format::Coordinate, Field::Pattern) => self.read_coordinates(lines, line, |bytes| Some((1.0, bytes))),
            // Rare enough to be read with care alone.
            (Format::Coordinate, Field::Complex) => self.read_coordinates(lines, line, |_| None),
            (Format::Array, _) => self.read_array(lines, line),
        }
    }

    fn read_coordinates(
        &mut self,
        mut lines: &[u8],
        line: &mut u64,
        value: impl Fn(&[u8]) -> Option<(f64, &[u8])>,
    ) -> Result<(), MatrixMarketError> {
        let (num_rows, num_cols) = (u64::from(self.header.num_rows), u64::from(self.header.num_cols));
        while !lines.is_empty() {
            *line += 1;
            let entry = match fast_entry(lines, &value) {
                Some((entry, rest)) if entry.row.wrapping_sub(1) < num_rows && entry.col.wrapping_sub(1) < num_cols => {
                    lines = rest;
                    entry
                }
                _ => {
                    let (text, rest) = split_line(lines);
                    lines = rest;
                    match careful_entry(text, &self.header)? {
                        Some(entry) => entry,
                        None => continue,
                    }
                }
            };
            self.add((entry.row - 1) as u32, (entry.col - 1) as u32, entry.value)?;
        }
        Ok(())
    }

    fn read_array(&mut self, mut lines: &[u8], line: &mut u64) -> Result<(), MatrixMarketError> {
        while !lines.is_empty() {
            *line += 1;
            let (text, rest) = split_line(lines);
            lines = rest;
            let Some(value) = careful_value(text, &self.header)? else { continue };
            let (row, col) = self.array_place;
            if self.num_read < self.header.num_stored {
                if row + 1 < self.header.num_rows {
                    self.array_place.0 = row + 1;
                } else {
                    self.begin_array_column(col + 1);
                }
            }
            // An array lists every element: its zeros are no entries. -0.0 is not the zero that a hole stands for.
            if value.to_bits() == 0 {
                self.count()?;
            } else {
                self.add(row, col, value)?;
            }
        }
        Ok(())
    }

    /// Moves to the first element of a column that an array lists.
    fn begin_array_column(&mut self, col: u32) {
        let mut place = match self.header.banner.symmetry {
            Symmetry::General => (0, col),
            Symmetry::Symmetric | Symmetry::Hermitian => (col, col),
            Symmetry::SkewSymmetric => (col.saturating_add(1), col),
        };
        if place.0 >= self.header.num_rows {
            place.0 = 0;
        }
        self.array_place = place;
    }

    fn count(&mut self) -> Result<(), MatrixMarketError> {
        if self.num_read == self.header.num_stored {
            return Err(MatrixMarketError::TooMany { expected: self.header.num_stored });
        }
        self.num_read += 1;
        Ok(())
    }

    /// Adds an entry and its mirror image.
    #[inline]
    fn add(&mut self, row: u32, col: u32, value: f64) -> Result<(), MatrixMarketError> {
        self.count()?;
        let symmetry = self.header.banner.symmetry;
        if symmetry == Symmetry::SkewSymmetric && row == col && value != 0.0 {
            return Err(MatrixMarketError::SkewDiagonal { index: u64::from(row) + 1 });
        }
        if value == 0.0 && self.zeros == ExplicitZeros::Drop {
            self.dropped_zeros += 1;
            return Ok(());
        }
        self.matrix.push_checked(row, col, T::from_f64(value));
        if row != col {
            match symmetry {
                Symmetry::General => {}
                // The real part of a hermitian matrix is symmetric.
                Symmetry::Symmetric | Symmetry::Hermitian => self.matrix.push_checked(col, row, T::from_f64(value)),
                Symmetry::SkewSymmetric => self.matrix.push_checked(col, row, T::from_f64(-value)),
            }
        }
        Ok(())
    }

    /// The matrix, once the file has ended.
    pub(super) fn finish(self) -> Result<Loaded<T>, MatrixMarketError> {
        if self.num_read < self.header.num_stored {
            return Err(MatrixMarketError::TooFew { expected: self.header.num_stored, found: self.num_read });
        }
        Ok(Loaded { header: self.header, matrix: self.matrix, dropped_zeros: self.dropped_zeros })
    }
}

/// A line, and what follows its line break.
pub(super) fn split_line(lines: &[u8]) -> (&[u8], &[u8]) {
    match lines.iter().position(|&byte| byte == b'\n') {
        Some(end) => (&lines[..end], &lines[end + 1..]),
        None => (lines, &[]),
    }
}

/// The entry of the first line and the lines after it, or none where anything at all is unusual.
#[inline(always)]
fn fast_entry<'a>(lines: &'a [u8], value: impl Fn(&'a [u8]) -> Option<(f64, &'a [u8])>) -> Option<(Entry, &'a [u8])> {
    let (row, rest) = index(skip_blanks(lines))?;
    let (col, rest) = index(blank(rest)?)?;
    let (value, rest) = value(rest)?;
    match skip_blanks(rest) {
        [b'\n', rest @ ..] => Some((Entry { row, col, value }, rest)),
        _ => None,
    }
}

#[inline(always)]
fn skip_blanks(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t' | b'\r', rest @ ..] = bytes {
        bytes = rest;
    }
    bytes
}

/// What follows at least one blank.
#[inline(always)]
fn blank(bytes: &[u8]) -> Option<&[u8]> {
    match bytes {
        [b' ' | b'\t', rest @ ..] => Some(skip_blanks(rest)),
        _ => None,
    }
}

/// Up to ten digits, as many as an index in range can have.
#[inline(always)]
fn index(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (position, &byte) in bytes.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return (position > 0).then(|| (number, &bytes[position..]));
        }
        if position == 10 {
            return None;
        }
        number = number * 10 + u64::from(digit);
    }
    None
}

#[inline(always)]
fn real(bytes: &[u8]) -> Option<(f64, &[u8])> {
    let bytes = blank(bytes)?;
    let (value, length) = fast_float2::parse_partial::<f64, _>(bytes).ok()?;
    Some((value, &bytes[length..]))
}

#[inline(always)]
fn small_integer(bytes: &[u8]) -> Option<(f64, &[u8])> {
    match blank(bytes)? {
        // -0 is left to the careful reader, like every number of more than ten digits.
        [b'-', rest @ ..] => {
            index(rest).filter(|&(number, _)| number > 0).map(|(number, rest)| (-(number as f64), rest))
        }
        rest => index(rest).map(|(number, rest)| (number as f64, rest)),
    }
}

/// The entry of a line; none where it is blank or a comment.
#[cold]
fn careful_entry(line: &[u8], header: &Header) -> Result<Option<Entry>, MatrixMarketError> {
    let (field, values) = match header.banner.field {
        field @ Field::Pattern => (field, 0),
        field @ Field::Complex => (field, 2),
        field => (field, 1),
    };
    let mut found = words(line);
    let Some(row) = found.next() else { return Ok(None) };
    if row.starts_with(b"%") {
        return Ok(None);
    }
    check_words(line, Format::Coordinate, field, 2 + values)?;
    let row = careful_index(Axis::Row, row, header.num_rows)?;
    let col = careful_index(Axis::Column, found.next().unwrap_or_default(), header.num_cols)?;
    let mut value = 1.0;
    for (position, word) in found.enumerate() {
        let number = number(word, field)?;
        if position == 0 {
            value = number;
        }
    }
    Ok(Some(Entry { row, col, value }))
}

/// The element of an array's line, its real part; none where the line is blank or a comment.
fn careful_value(line: &[u8], header: &Header) -> Result<Option<f64>, MatrixMarketError> {
    let field = header.banner.field;
    let mut found = words(line);
    let Some(first) = found.next() else { return Ok(None) };
    if first.starts_with(b"%") {
        return Ok(None);
    }
    check_words(line, Format::Array, field, if field == Field::Complex { 2 } else { 1 })?;
    let value = number(first, field)?;
    for word in found {
        number(word, field)?;
    }
    Ok(Some(value))
}

fn check_words(line: &[u8], format: Format, field: Field, expected: u64) -> Result<(), MatrixMarketError> {
    let found = words(line).count() as u64;
    if found == expected { Ok(()) } else { Err(MatrixMarketError::Words { format, field, expected, found }) }
}

fn careful_index(axis: Axis, word: &[u8], size: u32) -> Result<u64, MatrixMarketError> {
    if !word.iter().all(u8::is_ascii_digit) {
        return Err(MatrixMarketError::Index { axis, found: Excerpt::new(word) });
    }
    match integer(word) {
        Some(0) => Err(MatrixMarketError::IndexZero { axis }),
        Some(index) if index <= u64::from(size) => Ok(index),
        _ => Err(MatrixMarketError::IndexOutOfRange { axis, found: Excerpt::new(word), size: size.into() }),
    }
}

/// A number of the given field. A real number may be `inf` or `nan` in either case, and may have a Fortran `D` for its
/// exponent's `e`.
fn number(word: &[u8], field: Field) -> Result<f64, MatrixMarketError> {
    let refused = || MatrixMarketError::Value { field, found: Excerpt::new(word) };
    if field == Field::Integer {
        let digits = word.strip_prefix(b"-").or_else(|| word.strip_prefix(b"+")).unwrap_or(word);
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(refused());
        }
    }
    let text = core::str::from_utf8(word).map_err(|_| refused())?;
    text.parse().or_else(|_| text.replace(['d', 'D'], "e").parse()).map_err(|_| refused())
}
