use super::*;
use crate::element::Element;
use crate::formats::{BlockShape, Csr, Dense, FillStatistics, WindowShape, WindowStatistics};
use crate::generate::GeneratorSpec;
use half::bf16;

fn matrix(spec: &str) -> Csr<f32> {
    GeneratorSpec::parse(spec).expect("a specification").generate().expect("a matrix")
}

fn best(spec: &str, question: &Question) -> Format {
    let found = recommend(matrix(spec).pattern(), question);
    println!("{spec}, N = {}\n{found}", question.num_cols);
    found.best().expect("a candidate").format
}

/// Each format once, wherever it ended, and candidates in their order.
fn is_whole(found: &Recommendation) {
    let formats: Vec<_> = found
        .candidates
        .iter()
        .map(|one| one.format)
        .chain(found.passed_over.iter().map(|one| one.format))
        .chain(found.refused.iter().map(|one| one.format))
        .collect();
    assert_eq!(formats.len(), 17);
    for format in Format::all() {
        assert!(formats.contains(&format), "{format} is missing");
    }
    assert!(found.candidates.is_sorted_by_key(Candidate::seconds));
    for candidate in &found.candidates {
        assert!(candidate.seconds().is_finite() && candidate.launch_seconds() > 0.0, "{candidate}");
    }
}

#[test]
fn the_survey_counts_what_the_formats_store() {
    for spec in
        ["fem:1000", "rmat:9,7", "uniform:300x70,0.05", "uniform:1x900,0.3", "uniform:900x1,0.3", "banded:129,3"]
    {
        let a = matrix(spec);
        let fits = Fits::of(a.pattern());
        for block in BlockShape::ALL {
            let counted = FillStatistics::of(a.view(), block);
            assert_eq!(fits.get(Format::Bcsr(block)).num_units, counted.num_blocks, "{spec} {block}");
        }
        for window in Format::WINDOWS {
            let (counted, fit) = (WindowStatistics::of(a.pattern(), window), fits.get(Format::Wcsr(window)));
            assert_eq!((fit.num_windows, fit.num_units), (counted.num_windows, counted.num_panels), "{spec} {window}");
            assert_eq!(fit.longest, counted.max_panels.div_ceil(4), "{spec} {window}");
        }
    }
}

#[test]
fn bounds_hold() {
    for spec in ["fem:1000", "rmat:9,7", "uniform:300x70,0.05", "blocks:512x512,64x64,0.3"] {
        let a = matrix(spec);
        let (rows, fits) = (Rows::of(a.pattern().row_offsets()), Fits::of(a.pattern()));
        let question = Question::new(128, Dtype::Bf16);
        let problem = Problem::new(a.pattern(), &question);
        for format in Format::all().skip(1) {
            let (bound, fit) = (least(format, &problem, &rows), fits.get(format));
            let is_bound = bound.num_units <= fit.num_units
                && bound.num_columns <= fit.num_columns
                && bound.num_stages <= fit.num_stages
                && bound.longest <= fit.longest;
            assert!(is_bound, "{spec} {format}: {bound:?} {fit:?}");
            assert_eq!(bound.num_windows, fit.num_windows);
        }
    }
}

#[test]
fn windows_of_bands_and_meshes_follow_one_another_and_those_of_graphs_stray() {
    let stray = |spec: &str| {
        let fit = Fits::of(matrix(spec).pattern()).get(Format::Wcsr(WindowShape { rows: 64, group: 1 }));
        fit.num_strays as f64 / fit.num_columns as f64
    };
    assert_eq!((stray("banded:3000,5"), stray("fem:3000")), (0.0, 0.0));
    assert!(stray("uniform:200000x200000,0.00002") > 0.5);
}

#[test]
fn blocks_of_rows_fetch_between_the_heights_that_were_counted() {
    let a = matrix("fem:3000");
    let (fits, entries) = (Fits::of(a.pattern()), a.pattern().num_entries() as u64);
    let fetched = [1, 4, 8, 32, 64, 128].map(|rows| fits.fetched(entries, rows).num_columns);
    assert!(fetched.is_sorted_by(|one, other| one > other), "{fetched:?}");
    let counted = |rows| fits.get(Format::Wcsr(WindowShape { rows, group: 1 })).num_columns;
    for (found, expected) in fetched.into_iter().zip([Some(entries), None, Some(counted(8)), None, Some(counted(64))]) {
        assert!(expected.is_none_or(|expected| found.abs_diff(expected) <= 1), "{found} {expected:?}");
    }
}

#[test]
fn runs_are_where_the_plan_has_them() {
    for spec in
        ["banded:300000,1", "banded:300000,2", "banded:300000,3", "banded:20000,1", "rmat:12,4", "uniform:1x500,0.1"]
    {
        let a: Csr<bf16> = matrix(spec).map_values(bf16::from_f32);
        for num_cols in [8, 32, 64, 128, 256] {
            let question = Question::new(num_cols, Dtype::Bf16);
            let problem = Problem::new(a.pattern(), &question);
            let plan = AutoPlan::with_format(&a, &question, Format::Csr).expect("a plan");
            let Chosen::Csr(plan) = plan.chosen() else { panic!("{spec} is chosen in CSR") };
            let has_runs = plan.rows_per_team() > 1;
            assert_eq!(csr::takes_runs(&problem, problem.num_entries), has_runs, "{spec} x {num_cols}: {plan}");
        }
    }
}

#[test]
fn between_the_measured_widths_nothing_jumps() {
    let a = matrix("fem:3000");
    for dtype in [Dtype::Bf16, Dtype::F32] {
        let seconds = |num_cols| {
            let found = recommend(a.pattern(), &Question::new(num_cols, dtype));
            found.candidate(Format::Csr).expect("a candidate").launch_seconds()
        };
        for num_cols in [31, 32, 127, 128, 255, 256, 257] {
            let (before, after) = (seconds(num_cols), seconds(num_cols + 1));
            assert!(after >= before && after < before * 1.05, "{dtype} x {num_cols}: {before} and {after}");
        }
    }
}

#[test]
fn every_format_is_somewhere() {
    for spec in ["fem:3000", "rmat:10,8", "blocks:1024x1024,128x64,0.1", "uniform:1x500,0.1", "uniform:500x1,0.1"] {
        let a = matrix(spec);
        for num_cols in [0, 1, 3, 64, 128, 1000] {
            for dtype in [Dtype::Bf16, Dtype::F16, Dtype::F32, Dtype::F64] {
                is_whole(&recommend(a.pattern(), &Question::new(num_cols, dtype)));
            }
        }
    }
    for (rows, cols) in [(0, 0), (0, 7), (7, 0), (7, 7)] {
        let empty = CsrPattern::try_new(rows, cols, vec![0; rows + 1], vec![]).expect("an empty pattern");
        is_whole(&recommend(&empty, &Question::new(128, Dtype::Bf16)));
    }
}

#[test]
fn more_entries_are_not_faster_in_the_same_format() {
    for num_cols in [1, 32, 128, 256, 1000] {
        let mut before: Vec<(Format, f64)> = Vec::new();
        for density in [0.002, 0.005, 0.02, 0.1] {
            let a = matrix(&format!("uniform:2000x2000,{density}"));
            let (rows, fits) = (Rows::of(a.pattern().row_offsets()), Fits::of(a.pattern()));
            let question = Question::new(num_cols, Dtype::Bf16);
            let problem = Problem::new(a.pattern(), &question);
            let seconds: Vec<_> = Format::all()
                .map(|format| {
                    let fit = if format == Format::Csr { least(format, &problem, &rows) } else { fits.get(format) };
                    let estimate = estimate(&problem, format, &rows, &fit).expect("it is served");
                    (format, estimate.cost.seconds())
                })
                .collect();
            for (&(format, now), &(_, then)) in seconds.iter().zip(&before) {
                // Where all windows have more, the widest are split in fewer parts.
                assert!(now >= then * 0.99, "{format}, N = {num_cols}, {density}: {now} after {then}");
            }
            before = seconds;
        }
    }
}

#[test]
fn dense_blocks_are_multiplied_as_blocks() {
    for num_cols in [2048, 4096] {
        let found = best("blocks:4096x4096,128x64,0.1", &Question::new(num_cols, Dtype::Bf16));
        assert!(matches!(found, Format::Bcsr(BlockShape { rows: 128, .. })), "{found}");
    }
}

#[test]
fn graphs_stay_entries_and_finite_elements_become_windows() {
    for spec in ["rmat:17,16", "rmat:16,48"] {
        assert_eq!(best(spec, &Question::new(128, Dtype::Bf16)), Format::Csr, "{spec}");
    }
    let found = best("fem:30000", &Question::new(128, Dtype::Bf16));
    assert!(matches!(found, Format::Wcsr(_)), "{found}");
}

#[test]
fn one_column_and_one_multiplication_are_for_csr() {
    for spec in ["fem:30000", "uniform:3000x3000,0.01"] {
        assert_eq!(best(spec, &Question::new(1, Dtype::Bf16)), Format::Csr, "{spec}");
    }
    let once = Question::new(128, Dtype::Bf16).with_times(1);
    let found = recommend(matrix("fem:30000").pattern(), &once);
    assert_eq!(found.best().map(|best| best.format), Some(Format::Csr), "{found}");
    assert!(!found.passed_over.is_empty(), "what takes longer to prepare needs no count:\n{found}");
}

#[test]
fn f32_is_for_csr_and_the_others_say_why() {
    let found = recommend(matrix("fem:3000").pattern(), &Question::new(128, Dtype::F32));
    assert_eq!(found.candidates.len(), 1);
    assert_eq!((found.candidates[0].format, found.refused.len()), (Format::Csr, 16));
    let text = found.to_string();
    assert!(text.contains("the BCSR kernels take bf16 and f16, not f32"), "{text}");
    assert!(text.contains("the WCSR kernels take bf16 and f16, not f32"), "{text}");
    assert!(recommend(matrix("fem:300").pattern(), &Question::new(128, Dtype::F64)).best().is_none());
}

#[test]
fn a_column_major_b_is_not_for_windows() {
    let question = Question { b_layout: Layout::ColumnMajor, ..Question::new(128, Dtype::Bf16) };
    let found = recommend(matrix("fem:3000").pattern(), &question);
    let refused: Vec<_> = found.refused.iter().map(|one| one.format).collect();
    for window in Format::WINDOWS {
        assert!(refused.contains(&Format::Wcsr(window)), "{found}");
    }
}

#[test]
fn what_is_not_measured_says_so() {
    for (dtype, num_cols, is_measured) in [(Dtype::F32, 128, true), (Dtype::Bf16, 8, false), (Dtype::F32, 31, false)] {
        let found = recommend(matrix("fem:30000").pattern(), &Question::new(num_cols, dtype));
        let entries = found.candidate(Format::Csr).expect("a candidate");
        assert_eq!(entries.is_measured(), is_measured, "{entries}");
        assert_eq!(entries.to_string().contains("predicted, not measured"), !is_measured, "{entries}");
    }
    let found = recommend(matrix("fem:30000").pattern(), &Question::new(128, Dtype::Bf16));
    let windows = found.candidate(Format::Wcsr(WindowShape { rows: 64, group: 8 })).expect("a candidate");
    assert!(windows.is_measured() && windows.to_string().contains("measured constants"), "{windows}");
    let found = recommend(matrix("blocks:4096x4096,128x64,0.1").pattern(), &Question::new(4096, Dtype::Bf16));
    let blocks = found.candidate(Format::Bcsr(BlockShape { rows: 128, cols: 64 })).expect("a candidate");
    assert!(blocks.is_measured(), "{blocks}");
    // What `2026-11-30-spmm-blocks.csv` has for it.
    assert!((blocks.launch_seconds() / 33.888e-6 - 1.0).abs() < 0.15, "{blocks}");
}

#[test]
fn a_plan_is_of_the_question_s_type() {
    let a = matrix("fem:300");
    assert!(AutoPlan::new(&a, &Question::new(8, Dtype::Bf16)).is_err());
    let plan = AutoPlan::new(&a, &Question::new(8, Dtype::F32)).expect("a plan");
    assert!(plan.to_string().starts_with("csr_f32"), "{plan}");
    let b = Dense::from_fn(a.num_cols(), 8, Layout::RowMajor, |row, col| (row % 7) as f32 - col as f32);
    let (mut c, mut expected) =
        (Dense::<f32>::zeros(a.num_rows(), 8, Layout::RowMajor), Dense::zeros(a.num_rows(), 8, Layout::RowMajor));
    plan.multiply_on_cpu(1.0, b.view(), 0.0, &mut c.view_mut()).expect("a product");
    crate::cpu::spmm_csr(1.0, a.view(), b.view(), 0.0, &mut expected.view_mut()).expect("a product");
    assert_eq!(c, expected);
}

/// Small whole numbers, whose sums of products are exact.
fn whole<T: Element>(row: usize, col: usize) -> T {
    T::from_f64(((row * 5 + col * 3) % 7) as f64 - 3.0)
}

#[cfg(feature = "sim")]
#[test]
fn every_chosen_format_gives_the_reference_s_result() {
    use crate::sim::{Mode, Schedule, Simulated};
    let a: Csr<bf16> = matrix("fem:150").map_values(|value| bf16::from_f32((value * 4.0).round()));
    let device = DeviceDescription { num_multiprocessors: 2, ..DeviceDescription::h200() };
    let question = Question { output: Dtype::F32, ..Question::new(64, Dtype::Bf16).with_device(device) };
    let b = Dense::from_fn(a.num_cols(), 64, Layout::RowMajor, whole::<bf16>);
    let mut expected = Dense::<f32>::zeros(a.num_rows(), 64, Layout::RowMajor);
    crate::cpu::spmm_csr(1.0, a.view(), b.view(), 0.0, &mut expected.view_mut()).expect("a product");
    let formats = [
        Format::Csr,
        Format::Bcsr(BlockShape { rows: 64, cols: 16 }),
        Format::Wcsr(WindowShape { rows: 64, group: 8 }),
        Format::Wcsr(WindowShape { rows: 128, group: 1 }),
        Format::Wcsr(WindowShape { rows: 8, group: 8 }),
        Format::Wcsr(WindowShape { rows: 16, group: 1 }),
    ];
    let plans = formats.map(|format| AutoPlan::with_format(&a, &question, format).expect("a plan"));
    for plan in plans.into_iter().chain([AutoPlan::new(&a, &question).expect("a plan")]) {
        let mut c = Dense::from_fn(a.num_rows(), 64, Layout::RowMajor, |_, _| f32::NAN);
        let device = Simulated::new(Schedule::new(Mode::Random, 1));
        plan.simulate(&device, 1.0, b.view(), 0.0, &mut c.view_mut()).expect("a product").assert_clean();
        assert_eq!(c, expected, "{}", plan.format());
    }
}
