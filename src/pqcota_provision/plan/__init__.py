"""The plan contract: model, protobuf JSON, canonical bytes, approvals, gates and notices about a plan."""
