//! The reader as a machine that is fed pieces of a file.

use super::entries::{Entries, split_line};
use super::error::MatrixMarketError;
use super::header::{Banner, Header};
use super::{Loaded, ReadOptions};
use crate::element::Element;

/// What is wrong, and in which line; 0 where it is the file as a whole.
pub(super) struct Located {
    pub(super) line: u64,
    pub(super) error: MatrixMarketError,
}

enum Stage<T> {
    Banner,
    Sizes(Banner),
    Entries(Entries<T>),
}

/// Takes a file in pieces that end where lines end.
pub(super) struct Parser<'a, T> {
    options: &'a ReadOptions,
    /// Bytes that the whole file may have, as text.
    num_bytes: u64,
    line: u64,
    stage: Stage<T>,
}

impl<'a, T: Element> Parser<'a, T> {
    pub(super) fn new(options: &'a ReadOptions, num_bytes: u64) -> Self {
        Self { options, num_bytes, line: 0, stage: Stage::Banner }
    }

    /// Takes the next lines of the file, each with its line break; the file's last one may lack it.
    pub(super) fn feed(&mut self, mut lines: &[u8]) -> Result<(), Located> {
        while !lines.is_empty() {
            if let Stage::Entries(entries) = &mut self.stage {
                return entries.read(lines, &mut self.line).map_err(|error| Located { line: self.line, error });
            }
            let whole = lines;
            let (text, rest) = split_line(lines);
            lines = rest;
            self.line += 1;
            if text.trim_ascii().is_empty() {
                continue;
            }
            self.header_line(text, whole).map_err(|error| Located { line: self.line, error })?;
        }
        Ok(())
    }

    /// Takes a line before the entries, which is not blank; `whole` is that line and those after it.
    fn header_line(&mut self, text: &[u8], whole: &[u8]) -> Result<(), MatrixMarketError> {
        match self.stage {
            Stage::Banner => {
                // A tar archive is told by bytes that may lie behind its first line break.
                let foreign = super::error::ForeignFile::detect(whole);
                let banner = Banner::parse(text);
                match (foreign, banner) {
                    (Some(file), Err(MatrixMarketError::NoBanner { .. })) => {
                        return Err(MatrixMarketError::Foreign(file));
                    }
                    (_, banner) => self.stage = Stage::Sizes(banner?),
                }
            }
            Stage::Sizes(banner) => {
                if !text.trim_ascii_start().starts_with(b"%") {
                    let header = Header::parse(banner, text)?;
                    self.stage = Stage::Entries(Entries::new(header, self.options, self.num_bytes)?);
                }
            }
            Stage::Entries(_) => {}
        }
        Ok(())
    }

    /// Says what is wrong where the next line, which begins with `start`, is longer than `limit` bytes.
    pub(super) fn endless_line(&self, start: &[u8], limit: usize) -> Located {
        let error = match (&self.stage, Banner::parse(start)) {
            (Stage::Banner, Err(error)) => error,
            _ => MatrixMarketError::LineTooLong { limit: limit as u64 },
        };
        Located { line: self.line + 1, error }
    }

    /// The matrix, once the file has ended.
    pub(super) fn finish(self) -> Result<Loaded<T>, Located> {
        match self.stage {
            Stage::Banner => Err(Located { line: 0, error: MatrixMarketError::Empty }),
            Stage::Sizes(_) => Err(Located { line: self.line, error: MatrixMarketError::NoSizes }),
            Stage::Entries(entries) => entries.finish().map_err(|error| Located { line: self.line, error }),
        }
    }
}
