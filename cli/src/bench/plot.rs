//! A plot of a run, as SVG: a bar for each implementation of each workload, by its rate.

use std::fmt::Write;

use super::record::Row;

/// Height of a line of text, and of a bar with the space above it.
const LINE: usize = 20;
/// Where bars begin, behind the names.
const LEFT: usize = 230;
/// The longest bar.
const LONGEST: f64 = 520.0;
/// Width of the picture: the longest bar and a number behind it.
const WIDTH: usize = 830;

/// The bars of every implementation that was timed, one below the other; each workload has a scale of its own.
pub fn bars(rows: &[Row]) -> String {
    let mut body = String::new();
    let mut y = LINE;
    for group in rows.chunk_by(|left, right| left.workload == right.workload) {
        let timed = || group.iter().filter(|row| row.status.is_timed()).filter_map(|row| Some((row, row.tflops?)));
        let most = timed().map(|(_, tflops)| tflops).fold(0.0, f64::max);
        let _ = writeln!(
            body,
            r#"<text x="10" y="{y}" font-weight="bold">{}, TFLOP/s</text>"#,
            escaped(&group[0].workload)
        );
        y += LINE;
        for (row, tflops) in timed() {
            let length = if most > 0.0 { LONGEST * tflops / most } else { 0.0 };
            let (name, top, end) = (escaped(&row.implementation), y - 13, LEFT as f64 + length + 6.0);
            let _ = writeln!(body, r#"<text x="{}" y="{y}" text-anchor="end">{name}</text>"#, LEFT - 8);
            let _ = writeln!(
                body,
                r##"<rect x="{LEFT}" y="{top}" width="{length:.1}" height="{}" fill="{}"/>"##,
                LINE - 4,
                if row.implementation.contains("/ablation-") { "#4a7ab5" } else { "#b0b0b0" }
            );
            let _ = writeln!(body, r#"<text x="{end:.1}" y="{y}">{}</text>"#, number(tflops));
            y += LINE;
        }
        y += LINE;
    }
    let card = rows.first().map(|row| escaped(&format!("{}, commit {}", row.card, row.commit))).unwrap_or_default();
    let _ = writeln!(body, r##"<text x="10" y="{y}" fill="#606060">{card}</text>"##);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n",
        y + LINE
    )
}

/// Three digits or so.
fn number(value: f64) -> String {
    if value < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") }
}

/// As text in XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::record::Status;
    use super::*;

    #[test]
    fn bars_are_as_long_as_rates_and_what_was_not_timed_has_none() {
        let row = |workload: &str, implementation: &str, tflops: Option<f64>, status| Row {
            workload: workload.to_owned(),
            implementation: implementation.to_owned(),
            tflops,
            status,
            ..Row::default()
        };
        let svg = bars(&[
            row("a<b", "ours/spmm/ablation-tma", Some(100.0), Status::Right),
            row("a<b", "ours/spmm/bcsr", Some(400.0), Status::Right),
            row("a<b", "vendor/gemm/cublaslt", None, Status::Failed),
            row("c", "ours/spmm/bcsr", Some(2.5), Status::Right),
        ]);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains(r#"width="130.0""#), "{svg}");
        assert_eq!(svg.matches(r#"width="520.0""#).count(), 2, "{svg}");
        assert!(svg.contains("a&lt;b, TFLOP/s") && svg.contains(">2.50</text>"), "{svg}");
        assert!(!svg.contains("cublaslt"), "{svg}");
    }
}
