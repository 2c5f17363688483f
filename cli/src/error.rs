//! What ends the command early, and the exit code that it means.

use core::fmt;
use std::process::ExitCode;

/// The two ways to end badly, each with one sentence for the user and, where one helps, a hint.
#[derive(Debug)]
pub enum CliError {
    /// The request itself cannot be served: exit code 2.
    Usage(Message),
    /// The request was sound, but carrying it out failed: exit code 1.
    Failure(Message),
}

/// One sentence, and what to do about it.
#[derive(Debug)]
pub struct Message {
    sentence: String,
    hint: Option<String>,
}

/// [`core::result::Result`] with [`CliError`].
pub type Result<T, E = CliError> = core::result::Result<T, E>;

impl CliError {
    /// A request that cannot be served.
    pub fn usage(sentence: impl fmt::Display) -> Self {
        Self::Usage(Message { sentence: sentence.to_string(), hint: None })
    }

    /// A sound request that failed.
    pub fn failure(sentence: impl fmt::Display) -> Self {
        Self::Failure(Message { sentence: sentence.to_string(), hint: None })
    }

    /// Adds a line that says what to do.
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        let (Self::Usage(message) | Self::Failure(message)) = &mut self;
        message.hint = Some(hint.to_string());
        self
    }

    /// 2 for usage, 1 for failure.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Failure(_) => ExitCode::from(1),
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(message) | Self::Failure(message)) = self;
        write!(f, "error: {}", message.sentence)?;
        match &message.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for CliError {}

impl From<hopper_sparse::Error> for CliError {
    /// A problem that no plan serves is a usage error; everything else is a failure.
    fn from(error: hopper_sparse::Error) -> Self {
        match error {
            hopper_sparse::Error::Plan(error) => Self::usage(error),
            hopper_sparse::Error::Attention(error) => Self::usage(error),
            error => Self::failure(error),
        }
    }
}
