//! torch's scaled_dot_product_attention, in a process of its own: by cuDNN and by FlashAttention-2.

use crate::bench::peer::Peer;
use crate::bench::peer_process::Script;

static SCRIPT: Script = Script {
    name: "torch_attention.py",
    program: "python3",
    arguments: &["-c", include_str!("../../../../bench/peers/torch_attention.py")],
};

/// cuDNN's.
pub static CUDNN: Peer = Peer { name: "peer/attention/torch-cudnn", script: &SCRIPT, backend: "cudnn" };

/// FlashAttention-2, as torch has it.
pub static FLASH2: Peer = Peer { name: "peer/attention/torch-flash2", script: &SCRIPT, backend: "flash2" };
