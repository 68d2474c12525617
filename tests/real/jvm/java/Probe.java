import java.io.FileInputStream;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.Provider;
import java.security.Security;
import java.util.HexFormat;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.TrustManagerFactory;

/**
 * Says what this JVM is made of, one fact a line: every provider in order; whether it has ML-KEM; and for each key
 * store named as an argument the first message of a TLS client, and how a whole handshake in memory ends.
 */
public final class Probe {
    private static final char[] PASSWORD = "changeit".toCharArray();
    private static final int ROUNDS = 100;

    private Probe() {
    }

    public static void main(String[] keyStores) {
        for (Provider provider : Security.getProviders()) {
            System.out.println("provider " + provider.getName() + " " + provider.getClass().getName());
        }
        System.out.println("ml-kem " + hasAlgorithm("KeyPairGenerator", "ML-KEM"));
        for (String file : keyStores) {
            String name = Path.of(file).getFileName().toString();
            try {
                SSLContext context = context(file);
                System.out.println("hello " + name + " " + HexFormat.of().formatHex(firstMessage(context)));
                System.out.println("handshake " + name + " " + handshake(context));
            } catch (Throwable problem) {
                System.out.println("failure " + name + " " + chain(problem));
            }
        }
    }

    private static boolean hasAlgorithm(String type, String algorithm) {
        for (Provider provider : Security.getProviders()) {
            if (provider.getService(type, algorithm) != null) {
                return true;
            }
        }
        return false;
    }

    private static SSLContext context(String file) throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        try (InputStream input = new FileInputStream(file)) {
            store.load(input, PASSWORD);
        }
        KeyManagerFactory keys = KeyManagerFactory.getInstance("PKIX");
        keys.init(store, PASSWORD);
        TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLSv1.3");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
        return context;
    }

    private static SSLEngine engine(SSLContext context, boolean client) throws Exception {
        SSLEngine engine = context.createSSLEngine("localhost", 443);
        engine.setUseClientMode(client);
        engine.beginHandshake();
        return engine;
    }

    private static byte[] firstMessage(SSLContext context) throws Exception {
        ByteBuffer out = ByteBuffer.allocate(1 << 17);
        engine(context, true).wrap(ByteBuffer.allocate(0), out);
        out.flip();
        byte[] message = new byte[out.remaining()];
        out.get(message);
        return message;
    }

    private static String handshake(SSLContext context) throws Exception {
        SSLEngine client = engine(context, true);
        SSLEngine server = engine(context, false);
        ByteBuffer toServer = ByteBuffer.allocate(1 << 17);
        ByteBuffer toClient = ByteBuffer.allocate(1 << 17);
        for (int round = 0; round < ROUNDS; round++) {
            advance(client, toClient, toServer);
            advance(server, toServer, toClient);
            if (isDone(client) && isDone(server)) {
                return client.getSession().getProtocol() + " " + client.getSession().getCipherSuite();
            }
        }
        throw new IllegalStateException("the handshake does not end");
    }

    private static boolean isDone(SSLEngine engine) {
        return engine.getHandshakeStatus() == HandshakeStatus.NOT_HANDSHAKING;
    }

    private static void advance(SSLEngine engine, ByteBuffer in, ByteBuffer out) throws Exception {
        ByteBuffer application = ByteBuffer.allocate(1 << 17);
        for (int step = 0; step < ROUNDS; step++) {
            switch (engine.getHandshakeStatus()) {
                case NEED_TASK:
                    engine.getDelegatedTask().run();
                    break;
                case NEED_WRAP:
                    engine.wrap(ByteBuffer.allocate(0), out);
                    break;
                case NEED_UNWRAP:
                    in.flip();
                    SSLEngineResult result = engine.unwrap(in, application);
                    in.compact();
                    if (result.bytesConsumed() == 0) {
                        return;
                    }
                    break;
                default:
                    return;
            }
        }
    }

    private static String chain(Throwable problem) {
        String text = "";
        for (Throwable cause = problem; cause != null; cause = cause.getCause()) {
            text += (text.isEmpty() ? "" : " <- ") + cause;
        }
        return text.replace('\n', ' ');
    }
}
