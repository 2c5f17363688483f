//! `hopper-sparse attention` on the command line.

use std::num::NonZeroUsize;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use hopper_sparse::ops::attention::{Attention, Sequences, Window};

use crate::args::DtypeArg;

/// `hopper-sparse attention`
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct AttentionArgs {
    /// Sequences
    #[arg(long, value_name = "B", default_value_t = 1)]
    pub batch: usize,
    /// Queries of each sequence [default: as many as keys]
    #[arg(long, value_name = "LQ")]
    pub queries: Option<usize>,
    /// Keys of each sequence
    #[arg(long, value_name = "LK", default_value_t = 4096)]
    pub keys: usize,
    /// Packed sequences of these lengths, end to end, in place of a batch
    #[arg(long, value_name = "L,L,..", value_delimiter = ',', conflicts_with_all = ["batch", "queries", "keys"])]
    pub lengths: Vec<usize>,
    /// Heads of Q and O
    #[arg(long, value_name = "H", default_value_t = 16)]
    pub heads: usize,
    /// Heads of K and V, which divide those of Q [default: as many]
    #[arg(long, value_name = "H")]
    pub kv_heads: Option<usize>,
    /// Elements of a row of a head: a multiple of 8, up to 256
    #[arg(long, value_name = "D", default_value_t = 128)]
    pub head_dim: usize,
    /// Element type of Q, K, V and O: bf16 or f16
    #[arg(long, value_enum, default_value_t = DtypeArg::Bf16)]
    pub dtype: DtypeArg,
    /// A row sees no key after its diagonal; the last row's is the last key
    #[arg(long, conflicts_with = "window")]
    pub causal: bool,
    /// A row sees so many keys to the left and to the right of its diagonal, or `all`, as in 1024,0
    #[arg(long, value_name = "L,R")]
    pub window: Option<WindowArg>,
    /// Scores s become CAP tanh(s / CAP)
    #[arg(long, value_name = "CAP", allow_negative_numbers = true)]
    pub softcap: Option<f32>,
    /// The factor of Q K^T [default: 1 / sqrt(D)]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub scale: Option<f32>,
    /// Where to compute; auto takes the GPU where there is one
    #[arg(long, value_enum, default_value_t = BackendArg::Auto)]
    pub backend: BackendArg,
    /// Which GPU, counted from 0 [default: the first Hopper one]
    #[arg(long, value_name = "I")]
    pub device: Option<u32>,
    #[arg(
        long,
        value_name = "R",
        help = "Timed launches, whose median is shown [default: 20, fewer where they are slow]"
    )]
    pub repeat: Option<NonZeroUsize>,
    /// Seed of Q, K and V
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Compare O and the log-sum-exps with the float64 reference; exit with code 1 where an error is out of tolerance
    #[arg(long)]
    pub check: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Q, K, V and O lie as [batch, tokens, heads, D]; Q, K and V are normal numbers of the seed.

Examples:
  hopper-sparse attention --keys 8192 --causal --check
  hopper-sparse attention --batch 2 --keys 8192 --heads 32 --kv-heads 8 --causal    a prefill, four heads share K and V
  hopper-sparse attention --batch 64 --queries 1 --keys 8192 --heads 32 --kv-heads 8    one new token each
  hopper-sparse attention --lengths 8192,37,1024 --window 1024,0 --dtype f16 --json     packed, each row sees 1025 keys";

/// Where to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackendArg {
    /// The GPU where there is one, else the CPU
    Auto,
    /// The GPU, or fail
    Gpu,
    /// The CPU
    Cpu,
    /// The kernel in the simulator, on the CPU: for small problems
    #[cfg(feature = "sim")]
    Sim,
}

/// The two bounds of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowArg(pub Window);

impl FromStr for WindowArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bound = |text: &str| match text {
            "all" => Ok(None),
            text => text.parse().map(Some).map_err(|_| format!("`{text}` is neither a number of keys nor `all`")),
        };
        let (left, right) = text.split_once(',').ok_or("expected two numbers of keys, as in 1024,0")?;
        Ok(Self(Window { left: bound(left)?, right: bound(right)? }))
    }
}

impl AttentionArgs {
    /// What is to be computed; not yet checked.
    pub fn problem(&self) -> Attention {
        let (queries, keys) = if self.lengths.is_empty() {
            let of_length = |len| Sequences::Equal { batch: self.batch, len };
            (of_length(self.queries.unwrap_or(self.keys)), of_length(self.keys))
        } else {
            (Sequences::of_lengths(&self.lengths), Sequences::of_lengths(&self.lengths))
        };
        let window = match self.window {
            Some(WindowArg(window)) => window,
            None if self.causal => Window::CAUSAL,
            None => Window::FULL,
        };
        let mut problem = Attention::new(queries, self.heads, self.head_dim, self.dtype.into())
            .with_keys(keys)
            .with_key_heads(self.kv_heads.unwrap_or(self.heads))
            .with_window(window);
        problem.scale = self.scale.unwrap_or(problem.scale);
        problem.softcap = self.softcap;
        problem
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use hopper_sparse::Dtype;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: AttentionArgs,
    }

    fn problem(words: &str) -> Attention {
        let words = ["attention"].into_iter().chain(words.split_whitespace());
        Command::try_parse_from(words).expect("valid arguments").args.problem()
    }

    #[test]
    fn defaults_are_full_attention_of_a_sequence_to_itself() {
        let problem = problem("");
        assert_eq!(problem, Attention::new(Sequences::Equal { batch: 1, len: 4096 }, 16, 128, Dtype::Bf16));
        assert_eq!(problem.check(), Ok(()));
    }

    #[test]
    fn every_option_reaches_the_problem() {
        let decode = problem("--batch 3 --queries 1 --keys 77 --heads 8 --kv-heads 2 --head-dim 64 --dtype f16");
        assert_eq!(decode.queries, Sequences::Equal { batch: 3, len: 1 });
        assert_eq!(decode.keys, Sequences::Equal { batch: 3, len: 77 });
        assert_eq!((decode.num_query_heads, decode.num_key_heads, decode.head_dim), (8, 2, 64));
        assert_eq!(decode.dtype, Dtype::F16);
        assert_eq!(problem("--causal").window, Window::CAUSAL);
        assert_eq!(problem("--window 100,0").window, Window::sliding(100));
        assert_eq!(problem("--window all,7").window, Window { left: None, right: Some(7) });
        let scaled = problem("--softcap 30 --scale 0.5 --lengths 5,0,9");
        assert_eq!((scaled.scale, scaled.softcap), (0.5, Some(30.0)));
        assert_eq!(scaled.keys, Sequences::of_lengths(&[5, 0, 9]));
    }

    #[test]
    fn a_window_is_two_numbers() {
        for bad in ["", "5", "5,", "-1,0", "a,b", "1,2,3"] {
            bad.parse::<WindowArg>().unwrap_err();
        }
    }
}
