package tailrace.kafka;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import tailrace.clock.SetBack;
import tailrace.memory.OldObjects;

/** The consumers of this JVM that no task uses: each goes on in the next batch where it was. */
class Consumers {
    /** Nanoseconds after which a consumer is closed that no batch has asked for. */
    private static final long IDLE = 300L * 1000 * 1000 * 1000;

    /** Nanoseconds after which a consumer that no batch has asked for gives back the memory of its values. */
    private static final long REST = 10L * 1000 * 1000 * 1000;

    /** Milliseconds between two looks for consumers that rest. */
    private static final long LOOK = 5000;

    private static final List waiting = new ArrayList();
    private static boolean looking = false;

    /** When a task last read something. */
    private static volatile long used = System.nanoTime();

    /** Note that a task reads. */
    static void use() {
        used = System.nanoTime();
    }

    static Consumer take(KafkaRanges task) {
        SetBack.watch();
        Consumer found = null;
        List old = new ArrayList();
        synchronized (waiting) {
            for (Iterator each = waiting.iterator(); each.hasNext(); ) {
                Consumer consumer = (Consumer) each.next();
                if (found == null && consumer.name.equals(Consumer.nameOf(task))) {
                    found = consumer;
                    each.remove();
                } else if (System.nanoTime() - consumer.idleSince > IDLE) {
                    old.add(consumer);
                    each.remove();
                }
            }
        }
        closeAll(old);
        return found != null ? found : new Consumer(task);
    }

    static void giveBack(Consumer consumer) {
        consumer.idleSince = System.nanoTime();
        synchronized (waiting) {
            waiting.add(consumer);
            if (!looking) {
                looking = true;
                new Looks().start();
            }
        }
    }

    /**
     * Gives memory back: that of consumers which no task has used for a while, of which none is taken meanwhile, and garbage
     * of the heap while no task reads. A task that computes for longer between two blocks may meet a collection, too.
     *
     * <p>A thread, since a timer of Java waits by the wall clock.
     */
    static class Looks extends Thread {
        Looks() {
            super("resting consumers");
            setDaemon(true);
        }

        public void run() {
            while (true) {
                try {
                    Thread.sleep(LOOK);
                    look();
                } catch (InterruptedException ended) {
                    return;
                } catch (RuntimeException failed) {
                    // What was not given back is looked at again.
                }
            }
        }

        private static void look() {
            synchronized (waiting) {
                for (Iterator each = waiting.iterator(); each.hasNext(); ) {
                    Consumer consumer = (Consumer) each.next();
                    if (System.nanoTime() - consumer.idleSince > REST) {
                        consumer.values().rest();
                    }
                }
            }
            if (System.nanoTime() - used > REST) {
                OldObjects.collect();
            }
        }
    }

    /** Close those of a query that has ended; its Kafka group is its own. */
    static void close(String group) {
        List ended = new ArrayList();
        synchronized (waiting) {
            for (Iterator each = waiting.iterator(); each.hasNext(); ) {
                Consumer consumer = (Consumer) each.next();
                if (consumer.name.startsWith(group + " ")) {
                    ended.add(consumer);
                    each.remove();
                }
            }
        }
        closeAll(ended);
    }

    private static void closeAll(List consumers) {
        for (Iterator each = consumers.iterator(); each.hasNext(); ) {
            ((Consumer) each.next()).close();
        }
    }
}
