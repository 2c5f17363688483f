//! What the assembler says of a kernel.

use crate::{Error, TARGET_CPU};
use std::path::Path;
use std::process::Command;

/// What `ptxas -v` reports of one kernel.
///
/// Under launch bounds, `registers` is the cap at launch that they give, not the need: kernels that move registers
/// between warp groups are compiled for the cap and change it themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The kernel.
    pub kernel: String,
    /// Registers of a thread at launch.
    pub registers: u32,
    /// Bytes of spill stores, over the kernel and the functions it calls.
    pub spill_store_bytes: u32,
    /// Bytes of spill loads.
    pub spill_load_bytes: u32,
    /// Bytes of the stack frames: local memory of a thread.
    pub stack_bytes: u32,
    /// Bytes of static shared memory; the dynamic part is in the kernel's specification.
    pub shared_bytes: u32,
    /// Messages C7500 to C7599 and warnings, one each.
    pub messages: Vec<String>,
}

impl Report {
    /// Reads what `ptxas -v` prints about a module with one entry.
    pub fn parse(kernel: &str, output: &str) -> Self {
        let mut report = Self { kernel: kernel.to_owned(), ..Self::default() };
        for line in output.lines() {
            if line.contains("stack frame") {
                report.stack_bytes += number_before(line, " bytes stack frame");
                report.spill_store_bytes += number_before(line, " bytes spill stores");
                report.spill_load_bytes += number_before(line, " bytes spill loads");
            } else if line.contains("Used ") {
                report.registers = report.registers.max(number_before(line, " registers"));
                report.shared_bytes += number_before(line, " bytes smem");
            } else if line.contains("(C75") || line.trim_start().starts_with("ptxas warning") {
                report.messages.push(line.trim().to_owned());
            }
        }
        report
    }

    /// Whether the kernel may be shipped.
    ///
    /// # Errors
    /// [`Error::Spills`], [`Error::LocalMemory`], [`Error::Complaint`]: the first that holds.
    pub fn verdict(&self) -> Result<(), Error> {
        let kernel = self.kernel.clone();
        let (store_bytes, load_bytes) = (self.spill_store_bytes, self.spill_load_bytes);
        if store_bytes > 0 || load_bytes > 0 {
            return Err(Error::Spills { kernel, store_bytes, load_bytes });
        }
        if self.stack_bytes > 0 {
            return Err(Error::LocalMemory { kernel, stack_bytes: self.stack_bytes });
        }
        match self.messages.first() {
            Some(message) => Err(Error::Complaint { kernel, message: message.clone() }),
            None => Ok(()),
        }
    }
}

/// Assembles a PTX file of one kernel into `cubin`, and returns the report, good or bad.
///
/// # Errors
/// Where ptxas cannot be started or refuses the file.
pub fn assemble(ptxas: &Path, ptx: &Path, cubin: &Path) -> Result<Report, Error> {
    let kernel = ptx.file_stem().unwrap_or_default().to_string_lossy();
    let output = Command::new(ptxas)
        .arg(format!("-arch={TARGET_CPU}"))
        .arg("-v")
        .arg(ptx)
        .arg("-o")
        .arg(cubin)
        .output()
        .map_err(|source| Error::Start { program: ptxas.to_owned(), source })?;
    let text = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    match output.status.success() {
        true => Ok(Report::parse(&kernel, &text)),
        false => Err(Error::PtxasFailed { kernel: kernel.into_owned(), output: text.into_owned() }),
    }
}

/// The number that ends right before `unit`, or 0.
fn number_before(line: &str, unit: &str) -> u32 {
    let Some(at) = line.find(unit) else { return 0 };
    let start = line[..at].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |i| i + 1);
    line[start..at].parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
ptxas info    : 20 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 16 bytes smem
ptxas info    : Compile time = 3.244 ms
ptxas info    : Function properties for function_0
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
";

    #[test]
    fn a_good_kernel_passes() {
        let report = Report::parse("k", GOOD);
        let expected = Report { kernel: "k".to_owned(), registers: 168, shared_bytes: 16, ..Report::default() };
        assert_eq!(report, expected);
        report.verdict().unwrap();
    }

    #[test]
    fn spills_local_memory_and_complaints_do_not() {
        let spills = GOOD
            .replace("0 bytes stack frame, 0 bytes spill stores, 0", "8 bytes stack frame, 4 bytes spill stores, 12");
        let verdict = Report::parse("k", &spills).verdict();
        assert!(matches!(verdict, Err(Error::Spills { store_bytes: 8, load_bytes: 24, .. })), "{verdict:?}");

        let verdict = Report::parse("k", &GOOD.replacen("0 bytes stack", "512 bytes stack", 1)).verdict();
        assert!(matches!(verdict, Err(Error::LocalMemory { stack_bytes: 512, .. })), "{verdict:?}");

        let message = "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async is serialized";
        let verdict = Report::parse("k", &format!("{GOOD}{message}\n")).verdict();
        assert!(matches!(verdict, Err(Error::Complaint { message: found, .. }) if found == message));
    }
}
