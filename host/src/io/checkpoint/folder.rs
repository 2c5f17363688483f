//! Which files of a directory are the checkpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::CheckpointError;
use super::shard::Shard;
use crate::io::{Action, Excerpt, IoError, system};

/// A checkpoint in one file.
const SINGLE: &str = "model.safetensors";

/// What says which tensor is in which of several files.
pub(super) const INDEX: &str = "model.safetensors.index.json";

/// The files of a checkpoint, and in which of them each tensor is.
pub(super) struct Files {
    pub shards: Vec<Shard>,
    pub shard_of: BTreeMap<String, usize>,
}

impl Files {
    pub(super) fn open(folder: &Path) -> Result<Self, IoError> {
        let metadata = fs::metadata(folder).map_err(system(Action::Open, folder))?;
        if !metadata.is_dir() {
            return Err(refuse(folder, CheckpointError::NotADirectory));
        }
        // The order in which transformers looks.
        if folder.join(SINGLE).exists() {
            let shard = Shard::open(&folder.join(SINGLE))?;
            let shard_of = shard.names().map(|name| (name.to_owned(), 0)).collect();
            return Ok(Self { shards: vec![shard], shard_of });
        }
        if folder.join(INDEX).exists() {
            return Self::open_listed(folder);
        }
        match count_pickles(folder)? {
            0 => Err(refuse(folder, CheckpointError::NoWeights)),
            found => Err(refuse(folder, CheckpointError::OnlyPickles { found })),
        }
    }

    fn open_listed(folder: &Path) -> Result<Self, IoError> {
        let path = folder.join(INDEX);
        let refuse = |error| refuse(&path, error);
        let weight_map = weight_map(&path)?;
        let names: BTreeSet<&str> = weight_map.values().map(String::as_str).collect();
        // A name is joined to the directory: it must not lead out of it.
        if let Some(name) = names.iter().find(|name| Path::new(name).file_name() != Some(name.as_ref())) {
            return Err(refuse(CheckpointError::ShardName { found: Excerpt::name(name) }));
        }
        let missing: Vec<_> = names.iter().filter(|name| !folder.join(name).exists()).collect();
        if let Some(first) = missing.first() {
            return Err(refuse(CheckpointError::MissingShards {
                first: Excerpt::name(first),
                missing: missing.len() as u64,
                listed: names.len() as u64,
            }));
        }
        let shards = names.iter().map(|name| Shard::open(&folder.join(name))).collect::<Result<Vec<_>, _>>()?;
        let index_of: BTreeMap<&str, usize> = names.iter().enumerate().map(|(index, name)| (*name, index)).collect();
        let mut shard_of = BTreeMap::new();
        for (tensor, shard) in &weight_map {
            let index = index_of[shard.as_str()];
            if shards[index].tensor(tensor).is_none() {
                let [tensor, shard] = [tensor, shard].map(|name| Excerpt::name(name));
                return Err(refuse(CheckpointError::MissingTensor { tensor, shard }));
            }
            shard_of.insert(tensor.clone(), index);
        }
        Ok(Self { shards, shard_of })
    }
}

fn refuse(path: &Path, error: CheckpointError) -> IoError {
    IoError::Checkpoint { path: path.to_owned(), error }
}

/// The index: tensors, and the file of each.
fn weight_map(path: &Path) -> Result<BTreeMap<String, String>, IoError> {
    let refuse = |error| refuse(path, error);
    let mut index = read_json(path)?;
    match index.get_mut("weight_map").map(Value::take) {
        Some(map) => serde_json::from_value(map).map_err(|error| refuse(CheckpointError::Json(error))),
        None => Err(refuse(CheckpointError::NoWeightMap)),
    }
}

/// A file of JSON, whole.
pub(super) fn read_json(path: &Path) -> Result<Value, IoError> {
    let text = fs::read(path).map_err(system(Action::Read, path))?;
    serde_json::from_slice(&text).map_err(|error| refuse(path, CheckpointError::Json(error)))
}

fn count_pickles(folder: &Path) -> Result<u64, IoError> {
    let mut found = 0;
    for entry in fs::read_dir(folder).map_err(system(Action::Read, folder))? {
        let name = entry.map_err(system(Action::Read, folder))?.file_name();
        let name = name.to_string_lossy();
        let is_pickle = [".bin", ".pt", ".pth"].iter().any(|ending| name.ends_with(ending));
        found += u64::from(is_pickle);
    }
    Ok(found)
}
