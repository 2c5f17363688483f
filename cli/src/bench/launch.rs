//! How what a sample times is put on the device.

/// How launches reach the device: each costs the host some microseconds, which short products wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Launch {
    /// One by one, on a stream.
    #[default]
    Stream,
    /// Those of a sample together: captured once into a CUDA graph, which is replayed.
    Graph,
}

impl Launch {
    /// The name used on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Graph => "graph",
        }
    }

    /// The launches of a sample that takes `num_sets` sets of operands in turn and needs `least` launches: a graph begins with the
    /// first set each time it is replayed, so it goes round whole times, or a set would come back too soon and be found in the cache.
    pub fn whole(self, least: usize, num_sets: usize) -> usize {
        match self {
            Self::Stream => least,
            Self::Graph => least.next_multiple_of(num_sets.max(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_takes_every_set_equally_often() {
        assert_eq!([1, 4, 5, 64].map(|least| Launch::Graph.whole(least, 4)), [4, 4, 8, 64]);
        assert_eq!(Launch::Graph.whole(7, 1), 7);
        assert_eq!(Launch::Stream.whole(5, 4), 5);
    }
}
