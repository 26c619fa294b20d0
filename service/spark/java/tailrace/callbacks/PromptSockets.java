package tailrace.callbacks;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import javax.net.SocketFactory;

/**
 * Makes connections to the driver's Python that send at once (TCP_NODELAY).
 *
 * <p>py4j writes an answer of more than 8 KiB, such as the reports of tasks that read 64 Kafka partitions, in several
 * pieces. Without the option the second waits until the first is acknowledged, which Linux does after 40 ms.
 */
public class PromptSockets extends SocketFactory {
    public Socket createSocket() throws IOException {
        Socket socket = new Socket();
        socket.setTcpNoDelay(true);
        return socket;
    }

    public Socket createSocket(InetAddress host, int port) throws IOException {
        return createSocket(host, port, null, 0);
    }

    public Socket createSocket(InetAddress host, int port, InetAddress local, int localPort) throws IOException {
        return connected(new InetSocketAddress(host, port), new InetSocketAddress(local, localPort));
    }

    public Socket createSocket(String host, int port) throws IOException {
        return createSocket(host, port, null, 0);
    }

    public Socket createSocket(String host, int port, InetAddress local, int localPort) throws IOException {
        return connected(new InetSocketAddress(host, port), new InetSocketAddress(local, localPort));
    }

    private Socket connected(InetSocketAddress address, InetSocketAddress local) throws IOException {
        Socket socket = createSocket();
        try {
            socket.bind(local);
            socket.connect(address);
        } catch (IOException refused) {
            socket.close();
            throw refused;
        }
        return socket;
    }
}
