//! Files and bytes, plain or compressed, fed to the parser piece by piece.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::parser::{Located, Parser};
use super::{Loaded, ReadOptions};
use crate::element::Element;
use crate::io::{Action, IoError, MatrixMarketError, Progress, open, system};

/// Bytes of a piece. It fits a core's cache, and no line may be longer.
const PIECE_BYTES: usize = 1 << 20;

/// Text bytes that are expected of a compressed byte at most, for what is reserved ahead.
const EXPANSION: u64 = 8;

/// The first bytes of every gzip file.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Reads a file, plain or gzip-compressed (its first bytes decide, not its name).
///
/// # Errors
/// [`IoError::System`], [`IoError::IsDirectory`], or [`IoError::MatrixMarket`] with the line at fault.
pub fn read<T: Element>(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Loaded<T>, IoError> {
    read_reporting(path, options, &mut |_| ())
}

/// As [`read`], and calls `report` after each piece of the file, about once a megabyte.
///
/// # Errors
/// As [`read`].
pub fn read_reporting<T: Element>(
    path: impl AsRef<Path>,
    options: &ReadOptions,
    report: &mut dyn FnMut(Progress),
) -> Result<Loaded<T>, IoError> {
    let path = path.as_ref();
    let (file, bytes_total) = open(path)?;
    let mut source = Source::new(file).map_err(system(Action::Read, path))?;
    let action = source.action();
    let num_bytes = match source {
        Source::Plain(_) => bytes_total,
        Source::Gzip(_) => bytes_total.saturating_mul(EXPANSION),
    };
    let mut report = |bytes_done: u64| report(Progress { bytes_done: bytes_done.min(bytes_total), bytes_total });
    read_source(&mut source, Parser::new(options, num_bytes), &mut report).map_err(|failure| match failure {
        Failure::System(source) => system(action, path)(source),
        Failure::Content(Located { line, error }) => IoError::MatrixMarket { path: path.to_owned(), line, error },
    })
}

/// Reads plain text that is in memory.
///
/// # Errors
/// What is wrong, behind the number of the line; 0 where it is the text as a whole.
pub fn read_bytes<T: Element>(text: &[u8], options: &ReadOptions) -> Result<Loaded<T>, (u64, MatrixMarketError)> {
    let mut parser = Parser::new(options, text.len() as u64);
    parser.feed(text).and_then(|()| parser.finish()).map_err(|Located { line, error }| (line, error))
}

enum Failure {
    System(io::Error),
    Content(Located),
}

fn read_source<T: Element>(
    source: &mut Source,
    mut parser: Parser<'_, T>,
    report: &mut dyn FnMut(u64),
) -> Result<Loaded<T>, Failure> {
    let mut piece = vec![0; PIECE_BYTES];
    // Bytes of a line whose end has not come yet, at the front of `piece`.
    let mut kept = 0;
    loop {
        let read = match source.read(&mut piece[kept..]) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Failure::System(error)),
        };
        let filled = kept + read;
        if read == 0 {
            // The last line may lack its line break.
            parser.feed(&piece[..filled]).map_err(Failure::Content)?;
            report(source.bytes_done());
            return parser.finish().map_err(Failure::Content);
        }
        match piece[kept..filled].iter().rposition(|&byte| byte == b'\n') {
            Some(last) => {
                let end = kept + last + 1;
                parser.feed(&piece[..end]).map_err(Failure::Content)?;
                piece.copy_within(end..filled, 0);
                kept = filled - end;
                report(source.bytes_done());
            }
            None if filled == piece.len() => {
                return Err(Failure::Content(parser.endless_line(&piece, PIECE_BYTES)));
            }
            None => kept = filled,
        }
    }
}

/// A file that counts the bytes taken from it.
struct Counted {
    file: File,
    bytes: u64,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

/// The text of a file.
enum Source {
    Plain(BufReader<Counted>),
    Gzip(MultiGzDecoder<BufReader<Counted>>),
}

impl Source {
    fn new(file: File) -> io::Result<Self> {
        let mut reader = BufReader::with_capacity(1 << 16, Counted { file, bytes: 0 });
        let is_gzip = reader.fill_buf()?.starts_with(&GZIP_MAGIC);
        Ok(if is_gzip { Self::Gzip(MultiGzDecoder::new(reader)) } else { Self::Plain(reader) })
    }

    fn action(&self) -> Action {
        match self {
            Self::Plain(_) => Action::Read,
            Self::Gzip(_) => Action::Decompress,
        }
    }

    fn bytes_done(&self) -> u64 {
        match self {
            Self::Plain(reader) => reader.get_ref().bytes,
            Self::Gzip(decoder) => decoder.get_ref().get_ref().bytes,
        }
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(reader) => reader.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
        }
    }
}
