//! Loads the CUDA driver at run time, for programs that must also start without it.
