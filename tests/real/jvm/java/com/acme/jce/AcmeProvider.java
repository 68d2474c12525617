package com.acme.jce;

import java.security.MessageDigest;
import java.security.Provider;

/** A provider for tests that brings one algorithm of its own and nothing that a JDK has. */
public final class AcmeProvider extends Provider {
    private static final long serialVersionUID = 1L;

    public AcmeProvider() {
        super("AcmePQC", "1.0", "provider for tests");
        put("MessageDigest.ACME", AcmeDigest.class.getName());
    }

    public static final class AcmeDigest extends MessageDigest {
        public AcmeDigest() {
            super("ACME");
        }

        @Override
        protected void engineUpdate(byte input) {
        }

        @Override
        protected void engineUpdate(byte[] input, int offset, int length) {
        }

        @Override
        protected byte[] engineDigest() {
            return new byte[] {1};
        }

        @Override
        protected void engineReset() {
        }
    }
}
