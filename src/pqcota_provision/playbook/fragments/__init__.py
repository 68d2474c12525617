"""The pieces of openssl.cnf and java.security that the suite places beside a node's own config (SPEC 7)."""
