//! Attention to lists of keys by the GPU kernels, on whatever runs them: a device, or the simulator.

use hopper_sparse::formats::{DenseViewMut, HeadsView, HeadsViewMut};
use hopper_sparse::ops::attention::blocks::{
    BlockLists, BlockSize, CountedLists, KeyLists, ListExtents, SparseAttention, VerticalSlash,
};
use hopper_sparse::ops::attention::{Attention, Sequences, Window};
use hopper_sparse::reference::attention::AttentionRow;
use hopper_sparse::{Element, Result};

use super::attention::{Case, Inputs, Lse, Output, Runner};
use super::heads::HeadsPlacement;
use super::operands::Random;

/// Plans a problem with lists and runs its kernel.
pub trait SparseRunner {
    /// O = softmax(scale Q K^T) V, and the log-sum-exps where there is an array for them.
    fn attend<T: Element>(
        &self,
        problem: &SparseAttention,
        tensors: [HeadsView<'_, T>; 3],
        o: &mut HeadsViewMut<'_, T>,
        lse: Option<&mut DenseViewMut<'_, f32>>,
    ) -> Result<()>;
}

/// A runner for the problems of one list.
struct Listed<'a, R> {
    runner: &'a R,
    lists: &'a KeyLists,
}

impl<R: SparseRunner> Runner for Listed<'_, R> {
    fn attend<T: Element>(
        &self,
        problem: &Attention,
        tensors: [HeadsView<'_, T>; 3],
        o: &mut HeadsViewMut<'_, T>,
        lse: Option<&mut DenseViewMut<'_, f32>>,
    ) -> Result<()> {
        self.runner.attend(&SparseAttention::new(problem.clone(), self.lists.clone()), tensors, o, lse)
    }
}

/// Lists, and independently of them what they say.
#[derive(Clone, Debug)]
pub struct Lists {
    pub lists: KeyLists,
    pub extents: ListExtents,
    kind: Kind,
    /// The two lists of each block of queries.
    rows: Vec<[Vec<i32>; 2]>,
    /// Whether a block of queries has a key, by number.
    keys: Vec<Vec<bool>>,
}

fn numbers(keys: &[usize]) -> Vec<i32> {
    keys.iter().map(|&key| key as i32).collect()
}

impl Lists {
    fn new(
        problem: &Attention,
        kind: Kind,
        extents: ListExtents,
        rows: Vec<[Vec<i32>; 2]>,
        keys: Vec<Vec<bool>>,
    ) -> Self {
        let [first, second] = [0, 1].map(|list| {
            let rows: Vec<Vec<i32>> = rows.iter().map(|row| row[list].clone()).collect();
            CountedLists::of_rows(&rows)
        });
        let num_keys = problem.keys.longest();
        let lists: KeyLists = match kind {
            Kind::Blocks(block) => {
                let num_key_blocks = num_keys.div_ceil(block.tokens());
                BlockLists::try_new(block, extents, num_key_blocks, first, second).expect("proper lists").into()
            }
            Kind::VerticalSlash => {
                VerticalSlash::try_new(extents, num_keys, first, second).expect("proper lists").into()
            }
        };
        Self { lists, extents, kind, rows, keys }
    }

    /// Whether the list of a row's block has a key.
    fn names(&self, AttentionRow { sequence, head, row }: AttentionRow, key: usize) -> bool {
        let ListExtents { sequences, heads, query_blocks } = self.extents;
        let (sequence, head) = (if sequences == 1 { 0 } else { sequence }, if heads == 1 { 0 } else { head });
        let block = row / self.lists.block().tokens();
        self.keys[(sequence * heads + head) * query_blocks + block].get(key).is_some_and(|&named| named)
    }

    /// Random blocks, of which some are full and some partial, in any order; some lists are empty, some complete.
    pub fn of_blocks(problem: &Attention, block: BlockSize, shared: [Shared; 2], random: &mut Random) -> Self {
        let tokens = block.tokens();
        let extents = extents(problem, tokens, shared);
        let num_key_blocks = problem.keys.longest().div_ceil(tokens);
        let (mut rows, mut keys) = (Vec::new(), Vec::new());
        for _ in 0..extents.sequences * extents.heads * extents.query_blocks {
            let odds = [0, 3, 5, 10][random.below(4)];
            let mut chosen: Vec<usize> = (0..num_key_blocks).filter(|_| random.below(10) < odds).collect();
            shuffle(&mut chosen, random);
            let mut of_row = vec![false; num_key_blocks * tokens];
            chosen.iter().for_each(|block| of_row[block * tokens..][..tokens].fill(true));
            let (full, partial) = chosen.split_at(random.below(chosen.len() + 1));
            rows.push([numbers(full), numbers(partial)]);
            keys.push(of_row);
        }
        Self::new(problem, Kind::Blocks(block), extents, rows, keys)
    }

    /// Blocks from random keys on, and random columns, some of which are in blocks.
    pub fn of_columns(problem: &Attention, shared: [Shared; 2], random: &mut Random) -> Self {
        let extents = extents(problem, 64, shared);
        let num_keys = problem.keys.longest();
        let (mut rows, mut keys) = (Vec::new(), Vec::new());
        for _ in 0..extents.sequences * extents.heads * extents.query_blocks {
            let mut of_row = vec![false; num_keys + 64];
            let (mut starts, mut at) = (Vec::new(), random.below(80));
            while at < num_keys {
                if random.below(3) == 0 {
                    starts.push(at);
                    of_row[at..at + 64].fill(true);
                    at += 64;
                }
                at += random.below(100);
            }
            let odds = [0, 1, 20, 60][random.below(4)];
            let mut singles: Vec<usize> = (0..num_keys).filter(|_| random.below(100) < odds).collect();
            singles.iter().for_each(|&key| of_row[key] = true);
            shuffle(&mut starts, random);
            shuffle(&mut singles, random);
            rows.push([numbers(&starts), numbers(&singles)]);
            keys.push(of_row);
        }
        Self::new(problem, Kind::VerticalSlash, extents, rows, keys)
    }
}

/// Whether sequences, or heads, have lists of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    Yes,
    No,
}

fn extents(problem: &Attention, tokens: usize, [sequences, heads]: [Shared; 2]) -> ListExtents {
    ListExtents {
        sequences: if sequences == Shared::Yes { 1 } else { problem.queries.num_sequences() },
        heads: if heads == Shared::Yes { 1 } else { problem.num_query_heads },
        query_blocks: problem.queries.longest().div_ceil(tokens),
    }
}

fn shuffle(items: &mut [usize], random: &mut Random) {
    for end in (1..items.len()).rev() {
        items.swap(end, random.below(end + 1));
    }
}

/// One problem with lists.
#[derive(Clone, Debug)]
pub struct SparseCase {
    pub case: Case,
    pub lists: Lists,
}

impl SparseCase {
    fn run<T: Element>(&self, runner: &impl SparseRunner, inputs: &Inputs<T>) -> Output<T> {
        self.case.run(&Listed { runner, lists: &self.lists.lists }, inputs)
    }

    /// Compares rows of a result with the reference.
    fn check<T: Element>(&self, inputs: &Inputs<T>, output: &Output<T>) {
        let Self { case, lists } = self;
        let problem = &case.problem;
        let keys_of = |at: AttentionRow| {
            let (queries, keys) = (problem.queries.len_of(at.sequence), problem.keys.len_of(at.sequence));
            problem.window.keys_of(at.row, queries, keys).filter(|&key| lists.names(at, key)).collect()
        };
        case.expected_to(inputs, &case.rows(), &keys_of).check(output);
    }
}

/// Runs a problem with lists made by the library, and compares it with the reference by what the lists say of themselves.
pub fn check_lists<T: Element>(runner: &impl SparseRunner, case: &Case, inputs: &Inputs<T>, lists: &KeyLists) {
    let sparse = SparseAttention::new(case.problem.clone(), lists.clone());
    let keys_of = |at: AttentionRow| sparse.keys_of(at.sequence, at.head, at.row);
    case.expected_to(inputs, &case.rows(), &keys_of).check(&case.run(&Listed { runner, lists }, inputs));
}

/// Runs one problem with lists and compares it with the reference.
pub fn check_case<T: Element>(runner: &impl SparseRunner, case: &SparseCase) {
    let inputs = case.case.inputs::<T>();
    case.check(&inputs, &case.run(runner, &inputs));
}

/// The kinds of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Blocks(BlockSize),
    VerticalSlash,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Blocks(BlockSize::B64), Self::Blocks(BlockSize::B128), Self::VerticalSlash];

    pub fn lists(self, problem: &Attention, shared: [Shared; 2], random: &mut Random) -> Lists {
        match self {
            Self::Blocks(block) => Lists::of_blocks(problem, block, shared, random),
            Self::VerticalSlash => Lists::of_columns(problem, shared, random),
        }
    }

    pub fn tokens(self) -> usize {
        match self {
            Self::Blocks(block) => block.tokens(),
            Self::VerticalSlash => 64,
        }
    }
}

/// A problem of random lists with everything else at its default.
pub fn case(kind: Kind, problem: Attention, shared: [Shared; 2], random: &mut Random) -> SparseCase {
    let lists = kind.lists(&problem, shared, random);
    SparseCase { case: Case::of(problem, random), lists }
}

/// Windows, lengths, heads, sharing, placements and options, each with several others.
pub fn check_options<T: Element>(runner: &impl SparseRunner, kind: Kind, head_dim: usize) {
    use Shared::{No, Yes};
    let mut random = Random::fresh();
    let equal = |batch, len| Sequences::Equal { batch, len };
    let windows =
        [Window::CAUSAL, Window::FULL, Window::sliding(90), Window { left: Some(30), right: Some(70) }, Window::CAUSAL];
    for (index, (queries, keys, heads, shared)) in [
        (equal(2, 300), equal(2, 300), (2, 2), [No, No]),
        (equal(2, 256), equal(2, 256), (4, 2), [Yes, No]),
        (equal(1, 130), equal(1, 450), (3, 1), [Yes, Yes]),
        (equal(1, 200), equal(1, 77), (2, 1), [No, Yes]),
        (Sequences::of_lengths(&[130, 0, 1, 300]), Sequences::of_lengths(&[130, 0, 1, 300]), (2, 2), [No, No]),
        (Sequences::of_lengths(&[5, 200, 0, 64]), Sequences::of_lengths(&[300, 0, 77, 64]), (4, 2), [Yes, No]),
        (equal(3, 1), Sequences::of_lengths(&[1, 300, 129]), (2, 1), [No, Yes]),
        (equal(1, 640), equal(1, 640), (1, 1), [No, No]),
    ]
    .into_iter()
    .enumerate()
    {
        for (turn, window) in windows.into_iter().enumerate().skip(index % 2).step_by(2) {
            let problem = Attention {
                window,
                softcap: [None, Some(1.5)][(index + turn / 2) % 2],
                ..Attention::new(queries.clone(), heads.0, head_dim, T::DTYPE)
                    .with_keys(keys.clone())
                    .with_key_heads(heads.1)
            };
            let mut case = case(kind, problem, shared, &mut random);
            let placements = [HeadsPlacement::Tokens, HeadsPlacement::Heads, HeadsPlacement::HeadsApart];
            case.case.placements = [0, 1, 2, 3].map(|tensor| placements[(index + turn + tensor) % 3]);
            case.case.lse = [Lse::Wanted, Lse::Unwanted][index / 2 % 2];
            check_case::<T>(runner, &case);
        }
    }
}

/// Nothing, one and few: queries, keys, sequences.
pub fn check_edges<T: Element>(runner: &impl SparseRunner, kind: Kind, head_dim: usize) {
    let mut random = Random::fresh();
    let equal = |batch, len| Sequences::Equal { batch, len };
    for (queries, keys) in [
        (equal(0, 5), equal(0, 5)),
        (equal(2, 0), equal(2, 5)),
        (equal(2, 5), equal(2, 0)),
        (equal(1, 1), equal(1, 1)),
        (equal(2, 64), equal(2, 64)),
        (Sequences::of_lengths(&[]), Sequences::of_lengths(&[])),
        (Sequences::of_lengths(&[3, 2]), Sequences::of_lengths(&[0, 0])),
        (Sequences::of_lengths(&[1, 1, 129]), Sequences::of_lengths(&[2, 0, 128])),
    ] {
        for window in [Window::FULL, Window::CAUSAL] {
            let problem = Attention::new(queries.clone(), 2, head_dim, T::DTYPE).with_keys(keys.clone());
            let case = case(kind, problem.with_window(window), [Shared::No; 2], &mut random);
            check_case::<T>(runner, &case);
        }
    }
}

/// NaN and infinity in every key and value that no list names.
pub fn check_leaks<T: Element>(runner: &impl SparseRunner, kind: Kind, head_dim: usize) {
    let mut random = Random::fresh();
    for sequences in [Sequences::Equal { batch: 2, len: 330 }, Sequences::of_lengths(&[200, 70, 256])] {
        let problem = Attention::new(sequences.clone(), 2, head_dim, T::DTYPE).with_window(Window::CAUSAL);
        // Lists that all blocks of queries of all heads share: the keys that none names are many.
        let block = Lists::unnamed(kind, &problem, &mut random);
        let sparse = SparseCase { case: Case::of(problem.clone(), &mut random), lists: block };
        let mut tensors = sparse.case.inputs::<T>();
        let mut count = 0;
        for tensor in &mut tensors[1..] {
            let mut view = tensor.view_mut();
            for sequence in 0..sequences.num_sequences() {
                for key in 0..sequences.len_of(sequence) {
                    if sparse.lists.names(AttentionRow { sequence, head: 0, row: 0 }, key) {
                        continue;
                    }
                    count += 1;
                    let (batch, token) = sequences.place(sequence, key);
                    for head in 0..2 {
                        view.row_mut(batch, token, head).fill_with(|| random.special());
                    }
                }
            }
        }
        assert!(count > 100, "hardly any key is bad");
        sparse.check(&tensors, &sparse.run(runner, &tensors));
    }
}

impl Lists {
    /// The same keys for every block of queries: about the half of them.
    fn unnamed(kind: Kind, problem: &Attention, random: &mut Random) -> Self {
        let tokens = kind.tokens();
        let extents = extents(problem, tokens, [Shared::Yes; 2]);
        let num_keys = problem.keys.longest();
        let num_blocks = num_keys.div_ceil(tokens);
        let first = random.below(2);
        let mut named = vec![false; num_blocks * tokens];
        let rows = match kind {
            Kind::Blocks(_) => {
                let chosen: Vec<usize> = (first..num_blocks).step_by(2).collect();
                chosen.iter().for_each(|block| named[block * tokens..][..tokens].fill(true));
                [numbers(&chosen), Vec::new()]
            }
            Kind::VerticalSlash => {
                let start = 70 + random.below(20);
                named[start..start + 64].fill(true);
                let columns: Vec<usize> = (0..num_keys).filter(|key| key % 5 == first && !named[*key]).collect();
                columns.iter().for_each(|&key| named[key] = true);
                [vec![start as i32], numbers(&columns)]
            }
        };
        let count = extents.query_blocks;
        Self::new(problem, kind, extents, vec![rows; count], vec![named; count])
    }
}

/// A sequence alone and in a batch, its list in any order: the same bits.
pub fn check_batches<T: Element>(runner: &impl SparseRunner, kind: Kind, head_dim: usize) {
    const LEN: usize = 310;
    let mut random = Random::fresh();
    let of = |lengths: &[usize]| {
        Attention::new(Sequences::of_lengths(lengths), 2, head_dim, T::DTYPE).with_window(Window::CAUSAL)
    };
    let alone = case(kind, of(&[LEN]), [Shared::No; 2], &mut random);
    let inputs = alone.case.inputs::<T>();
    let expected = alone.run(runner, &inputs);
    let (lengths, at) = ([70, LEN, 200], 1);
    let mut batch = case(kind, of(&lengths), [Shared::No; 2], &mut random);
    batch.lists.replace(&batch.case.problem, at, &alone.lists);
    let mut tensors = batch.case.inputs::<T>();
    for (to, from) in tensors.iter_mut().zip(&inputs) {
        let mut to = to.view_mut();
        for (token, head) in (0..LEN).flat_map(|token| [(token, 0), (token, 1)]) {
            to.row_mut(0, lengths[0] + token, head).copy_from_slice(from.view().row(0, token, head));
        }
    }
    let found = batch.run(runner, &tensors);
    batch.check(&tensors, &found);
    for (row, head) in (0..LEN).flat_map(|row| [(row, 0), (row, 1)]) {
        let place = lengths[0] + row;
        let bits = |row: &[T]| row.iter().map(|element| element.to_f64().to_bits()).collect::<Vec<_>>();
        assert_eq!(
            bits(found.o.view().row(0, place, head)),
            bits(expected.o.view().row(0, row, head)),
            "row {row} of head {head} has other bits in a batch"
        );
        let lse = [found.lse.view().get(head, place), expected.lse.view().get(head, row)];
        assert_eq!(lse[0].to_bits(), lse[1].to_bits(), "row {row} of head {head} has another log-sum-exp in a batch");
    }
}

impl Lists {
    /// Gives a sequence the lists of another problem's only one, of as many blocks of queries, each in another order.
    fn replace(&mut self, problem: &Attention, sequence: usize, other: &Self) {
        assert_eq!(self.extents.query_blocks, other.extents.query_blocks);
        let begin = sequence * other.rows.len();
        let places = begin..begin + other.rows.len();
        self.keys[places.clone()].clone_from_slice(&other.keys);
        for (to, from) in self.rows[places].iter_mut().zip(&other.rows) {
            *to = from.clone().map(|mut list| {
                list.reverse();
                list
            });
        }
        *self = Self::new(problem, self.kind, self.extents, self.rows.clone(), self.keys.clone());
    }
}
