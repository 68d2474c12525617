"""What has been seen to run on a node, and the proofs that let a module be activated elsewhere."""
