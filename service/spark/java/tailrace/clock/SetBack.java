package tailrace.clock;

/**
 * Ends a JVM whose clock is set back: Kafka's client counts time-outs by that clock, and would wait longer by as much.
 *
 * <p>The driver watches its own clock (`service.host.clock_watch`); this is for the machines of executors, which Spark
 * replaces.
 */
public class SetBack {
    /** Milliseconds by which a clock may be set back at once, as in the driver. */
    private static final long LONGEST = 60000;

    /** The wall clock without the time that has passed. */
    private static long ahead = difference();

    private SetBack() {}

    /** End this JVM if its clock was set back since the last look. */
    public static synchronized void look() {
        long now = difference();
        long back = ahead - now;
        ahead = now;
        if (back > LONGEST) {
            System.err.println("the clock of this machine was set back by " + back / 1000 + " s: what waits for Kafka ends");
            System.err.flush();
            Runtime.getRuntime().halt(1);
        }
    }

    private static long difference() {
        return System.currentTimeMillis() - System.nanoTime() / 1000000;
    }
}
