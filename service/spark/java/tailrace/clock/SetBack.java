package tailrace.clock;

/**
 * Ends a JVM whose clock is set back: Kafka's client counts time-outs by that clock, and would wait longer by as much.
 *
 * <p>The driver and the writers watch the clock themselves (`service.host.clock_watch`). This is for the machines of
 * executors, which Spark replaces. A thread, since a timer of Java waits by the wall clock, too.
 */
public class SetBack extends Thread {
    /** Milliseconds by which a clock may be set back at once, as in `service.host.clock_watch`. */
    private static final long LONGEST = 60000;

    /** Milliseconds between two looks. */
    private static final long LOOK = 500;

    /** Milliseconds that reading two clocks may take: after a longer pause they do not belong together. */
    private static final long READ = 1000;

    /** Milliseconds that the message may take before the JVM ends: nobody may be reading it. */
    private static final long SAY = 1000;

    private static boolean watched = false;
    private long ahead = difference();

    private SetBack() {
        super("clock");
        setDaemon(true);
    }

    /** Watch the clock of this JVM from now on; called again, it does nothing. */
    public static synchronized void watch() {
        if (!watched) {
            watched = true;
            new SetBack().start();
        }
    }

    public void run() {
        try {
            while (true) {
                Thread.sleep(LOOK);
                long now = difference();
                if (ahead - now > LONGEST) {
                    end(ahead - now);
                }
                ahead = now;
            }
        } catch (InterruptedException ended) {
            // Nobody interrupts this thread but the end of the JVM.
        }
    }

    private static void end(final long back) throws InterruptedException {
        Thread saying = new Thread("clock message") {
            public void run() {
                System.err.println("the clock of this machine was set back by " + back / 1000 + " s: this process ends");
                System.err.flush();
            }
        };
        saying.setDaemon(true);
        saying.start();
        saying.join(SAY);
        Runtime.getRuntime().halt(1);
    }

    /** The wall clock without the time that has passed. */
    private static long difference() {
        while (true) {
            long before = System.nanoTime() / 1000000;
            long now = System.currentTimeMillis();
            if (System.nanoTime() / 1000000 - before < READ) {
                return now - before;
            }
        }
    }
}
