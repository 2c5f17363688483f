//! Where and when a run took place.

use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What every row of a record says about the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The commit that was built; `unknown` where nobody says.
    pub commit: String,
    /// The card, or the processor's architecture.
    pub card: String,
    /// The driver's version; empty without a card.
    pub driver: String,
    /// The date, UTC, as YYYY-MM-DD.
    pub date: String,
}

impl Machine {
    /// A machine without a card. `commit` is what the command line says.
    pub fn without_card(commit: Option<&str>) -> Self {
        Self {
            commit: find_commit(commit),
            card: format!("cpu-{}", std::env::consts::ARCH),
            driver: String::new(),
            date: date(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
        }
    }
}

/// The commit: as given, else HOPPER_COMMIT (for a machine without the repository), else what git says.
fn find_commit(given: Option<&str>) -> String {
    let from_environment = || std::env::var("HOPPER_COMMIT").ok().filter(|commit| !commit.is_empty());
    let from_git = || {
        let mut git = Command::new("git");
        git.args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]).stderr(Stdio::null());
        let output = git.output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    given.map(str::to_owned).or_else(from_environment).or_else(from_git).unwrap_or_else(|| "unknown".to_owned())
}

/// The civil date of a time since 1970, UTC.
///
/// Days are counted from 1 March of year 0, so that the leap day is the last of its year; 146,097 days are 400 years.
fn date(since_1970: Duration) -> String {
    let days = since_1970.as_secs() / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_around_leap_days() {
        let day = |number: u64| date(Duration::from_secs(number * 86_400 + 86_399));
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(11_016), "2000-02-29");
        assert_eq!(day(11_017), "2000-03-01");
        assert_eq!(day(20_453), "2025-12-31");
        assert_eq!(day(20_454), "2026-01-01");
    }

    #[test]
    fn the_command_line_names_the_commit() {
        assert_eq!(Machine::without_card(Some("abc")).commit, "abc");
    }
}
