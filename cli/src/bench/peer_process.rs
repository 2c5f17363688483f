//! A peer in a process of its own: a script that is told what to do, one JSON object a line, and answers each with one.
//!
//! The script's first line says whether it can serve at all: `{"status": "ready", "note": ...}`, or `refused`. A reply with
//! the status `refused` or `failed` is an error, with the script's note as its sentence. Nothing is waited for without a
//! limit, and the process ends with its owner.

use core::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use serde_json::{Value, json};

/// How long a process that was told to quit may take.
const FAREWELL: Duration = Duration::from_millis(500);

/// What is run: a program with arguments.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// What it is called in sentences.
    pub name: &'static str,
    /// The program, looked for on PATH.
    pub program: &'static str,
    /// Its arguments; the script's text may be one of them.
    pub arguments: &'static [&'static str],
}

/// Why a peer does not answer as it should.
#[derive(Debug)]
#[non_exhaustive]
pub enum PeerError {
    /// The program could not be started.
    Start {
        /// The program.
        program: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The peer says that it does not take this.
    Refused {
        /// Its own sentence.
        note: String,
    },
    /// The peer says that it failed.
    Failed {
        /// Its own sentence.
        note: String,
    },
    /// There was no answer in time; the process was ended.
    Silent {
        /// The script.
        name: &'static str,
        /// What it was told.
        command: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// The process ended.
    Ended {
        /// The script.
        name: &'static str,
        /// What it was told.
        command: String,
        /// The last line that it wrote on standard error; empty where there was none.
        last_words: String,
    },
    /// The answer is not what was agreed.
    Garbled {
        /// The script.
        name: &'static str,
        /// The line.
        line: String,
        /// What was expected in it.
        expected: &'static str,
    },
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start { program, source } if source.kind() == io::ErrorKind::NotFound => {
                write!(f, "{program} is not on PATH")
            }
            Self::Start { program, source } => write!(f, "{program} does not start: {source}"),
            Self::Refused { note } | Self::Failed { note } => f.write_str(note),
            Self::Silent { name, command, limit } => {
                write!(f, "{name} did not answer `{command}` within {} s", limit.as_secs_f64())
            }
            Self::Ended { name, command, last_words } => {
                write!(f, "{name} ended instead of answering `{command}`")?;
                if last_words.is_empty() { Ok(()) } else { write!(f, ": {last_words}") }
            }
            Self::Garbled { name, line, expected } => {
                write!(f, "{name} answered `{line}`, where {expected} was expected")
            }
        }
    }
}

impl std::error::Error for PeerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Start { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// A running script.
pub struct PeerProcess {
    name: &'static str,
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    last_words: Arc<Mutex<String>>,
    listener: JoinHandle<()>,
    /// What it said of itself when it was ready.
    greeting: String,
    has_ended: bool,
}

impl PeerProcess {
    /// Starts `script` and waits, `limit` at most, until it says that it is ready.
    ///
    /// # Errors
    /// Why it is not.
    pub fn start(script: &Script, limit: Duration) -> Result<Self, PeerError> {
        let mut command = Command::new(script.program);
        command.args(script.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |source| PeerError::Start { program: script.program, source };
        let mut child = command.spawn().map_err(failed)?;
        let missing = || failed(io::Error::from(io::ErrorKind::BrokenPipe));
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let errors = child.stderr.take().ok_or_else(missing)?;

        let (sender, lines) = channel();
        // Both threads end with the process, whose pipes they read.
        spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let last_words = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&last_words);
        let listener = spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok).filter(|line| !line.trim().is_empty()) {
                if let Ok(mut last) = heard.lock() {
                    line.trim().clone_into(&mut last);
                }
            }
        });

        let name = script.name;
        let mut process =
            Self { name, child, input, lines, last_words, listener, greeting: String::new(), has_ended: false };
        let reply = process.reply("start", limit)?;
        reply["note"].as_str().unwrap_or_default().clone_into(&mut process.greeting);
        Ok(process)
    }

    /// What it said of itself when it was ready.
    pub fn greeting(&self) -> &str {
        &self.greeting
    }

    /// Whether it can be asked no more.
    pub fn has_ended(&mut self) -> bool {
        self.has_ended || !matches!(self.child.try_wait(), Ok(None))
    }

    /// Tells it `request`, an object with a `command`, and waits, `limit` at most, for the answer.
    ///
    /// # Errors
    /// What the peer says against it, or that it does not answer.
    pub fn ask(&mut self, request: &Value, limit: Duration) -> Result<Value, PeerError> {
        let command = request["command"].as_str().unwrap_or_default().to_owned();
        if self.has_ended {
            return Err(self.ended(&command));
        }
        let written = writeln!(self.input, "{request}").and_then(|()| self.input.flush());
        if written.is_err() {
            return Err(self.ended(&command));
        }
        self.reply(&command, limit)
    }

    /// As [`PeerProcess::ask`], for an answer that holds a number under `field`. Null is NaN.
    ///
    /// # Errors
    /// As [`PeerProcess::ask`]; [`PeerError::Garbled`] where there is no number.
    pub fn ask_number(&mut self, request: &Value, field: &'static str, limit: Duration) -> Result<f64, PeerError> {
        let reply = self.ask(request, limit)?;
        self.number(&reply, field)
    }

    /// The number under `field` of a reply; null is NaN.
    ///
    /// # Errors
    /// [`PeerError::Garbled`] where there is none.
    pub fn number(&self, reply: &Value, field: &'static str) -> Result<f64, PeerError> {
        match reply.get(field) {
            Some(Value::Null) => Ok(f64::NAN),
            value => value.and_then(Value::as_f64).ok_or_else(|| PeerError::Garbled {
                name: self.name,
                line: reply.to_string(),
                expected: field,
            }),
        }
    }

    fn reply(&mut self, command: &str, limit: Duration) -> Result<Value, PeerError> {
        let line = match self.lines.recv_timeout(limit) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                // A late answer would be taken for the next one's.
                self.end();
                return Err(PeerError::Silent { name: self.name, command: command.to_owned(), limit });
            }
            Err(RecvTimeoutError::Disconnected) => return Err(self.ended(command)),
        };
        let garbled = |line| PeerError::Garbled { name: self.name, line, expected: "a JSON object" };
        let reply = match serde_json::from_str::<Value>(&line) {
            Ok(reply) if reply.is_object() => reply,
            _ => return Err(garbled(line)),
        };
        let note = || reply["note"].as_str().unwrap_or("it does not say why").to_owned();
        match reply["status"].as_str() {
            Some("refused") => Err(PeerError::Refused { note: note() }),
            Some("failed") => Err(PeerError::Failed { note: note() }),
            _ => Ok(reply),
        }
    }

    fn ended(&mut self, command: &str) -> PeerError {
        self.end();
        // What it wrote last may still be in the pipe. A child of its own can keep the pipe open: not for ever, then.
        wait_until(FAREWELL, || self.listener.is_finished());
        let last_words = self.last_words.lock().map(|words| words.clone()).unwrap_or_default();
        PeerError::Ended { name: self.name, command: command.to_owned(), last_words }
    }

    /// Ends the process, and waits for that.
    fn end(&mut self) {
        self.has_ended = true;
        // It may have ended by itself, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        // A process that leaves by itself gives its device memory back in order.
        let _ = writeln!(self.input, "{}", json!({ "command": "quit" })).and_then(|()| self.input.flush());
        wait_until(FAREWELL, || self.has_ended());
        self.end();
    }
}

/// Waits for `is_done`, at most `limit`.
fn wait_until(limit: Duration, mut is_done: impl FnMut() -> bool) {
    const STEPS: u32 = 50;
    for _ in 0..STEPS {
        if is_done() {
            return;
        }
        sleep(limit / STEPS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    /// A shell as the peer: it says `greeting`, then reads lines and does `body` for each.
    fn shell(text: &'static str) -> Script {
        let arguments: &'static [&'static str] = Box::leak(Box::new(["-c", text]));
        Script { name: "fake peer", program: "sh", arguments }
    }

    #[test]
    fn a_peer_greets_and_answers_each_command() {
        let script = shell(
            r#"echo '{"status": "ready", "note": "version 3"}'
            while read -r line; do
                case "$line" in
                *prepare*) echo '{"status": "refused", "note": "not this shape"}' ;;
                *error*) echo '{"error": null, "limit": 0.5}' ;;
                *time*) echo '{"microseconds": 12.5}' ;;
                *fail*) echo '{"status": "failed", "note": "out of memory"}' ;;
                *nonsense*) echo 'nonsense' ;;
                *quit*) exit 0 ;;
                esac
            done"#,
        );
        let mut peer = PeerProcess::start(&script, LIMIT).expect("it starts");
        assert_eq!(peer.greeting(), "version 3");
        let ask = |peer: &mut PeerProcess, command: &str| peer.ask(&json!({ "command": command }), LIMIT);
        let number = peer.ask_number(&json!({ "command": "time", "launches": 3 }), "microseconds", LIMIT);
        assert_eq!(number.expect("a time"), 12.5);
        assert!(matches!(ask(&mut peer, "prepare"), Err(PeerError::Refused { note }) if note == "not this shape"));
        assert!(matches!(ask(&mut peer, "fail"), Err(PeerError::Failed { note }) if note == "out of memory"));
        let reply = ask(&mut peer, "error").expect("an error");
        assert!(peer.number(&reply, "error").expect("null").is_nan());
        assert_eq!(peer.number(&reply, "limit").expect("a number"), 0.5);
        let missing = peer.number(&reply, "median").expect_err("there is none");
        assert!(missing.to_string().contains("where median was expected"), "{missing}");
        let garbled = ask(&mut peer, "nonsense").expect_err("no JSON");
        assert!(garbled.to_string().contains("answered `nonsense`"), "{garbled}");
        assert!(!peer.has_ended());
    }

    #[test]
    fn a_peer_that_is_not_there_or_refuses_at_once_says_so() {
        let absent = Script { name: "absent", program: "hopper-sparse-no-such-program", arguments: &[] };
        let error = PeerProcess::start(&absent, LIMIT).err().expect("there is no such program");
        assert_eq!(error.to_string(), "hopper-sparse-no-such-program is not on PATH");
        let refusing = shell(r#"echo '{"status": "refused", "note": "python3 has no torch"}'"#);
        let error = PeerProcess::start(&refusing, LIMIT).err().expect("it refuses");
        assert!(matches!(&error, PeerError::Refused { note } if note == "python3 has no torch"), "{error}");
    }

    #[test]
    fn a_silent_peer_is_ended() {
        let script = shell("echo '{\"status\": \"ready\"}'; exec sleep 600");
        let mut peer = PeerProcess::start(&script, LIMIT).expect("it starts");
        let limit = Duration::from_millis(50);
        let error = peer.ask(&json!({ "command": "time" }), limit).expect_err("it sleeps");
        assert_eq!(error.to_string(), "fake peer did not answer `time` within 0.05 s");
        assert!(peer.has_ended());
        assert!(matches!(peer.ask(&json!({ "command": "time" }), LIMIT), Err(PeerError::Ended { .. })));
    }

    #[test]
    fn the_last_words_of_a_peer_that_ends_are_told() {
        let script =
            shell("echo '{\"status\": \"ready\"}'; read -r line; echo 'Traceback' >&2; echo 'it broke' >&2; exit 1");
        let mut peer = PeerProcess::start(&script, LIMIT).expect("it starts");
        let error = peer.ask(&json!({ "command": "error" }), LIMIT).expect_err("it ends");
        assert!(error.to_string().starts_with("fake peer ended instead of answering `error`: it broke"), "{error}");
        assert!(peer.has_ended());
    }
}
