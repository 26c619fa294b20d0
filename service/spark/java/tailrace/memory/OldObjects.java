package tailrace.memory;

import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryUsage;
import java.util.Iterator;

/**
 * Objects that have outlived collections of young ones. Only a full collection frees the garbage among them.
 *
 * <p>A backlog leaves up to 200 MiB of it. An idle JVM allocates too little to ever collect that by itself; Spark asks for a
 * collection every ten minutes.
 */
public class OldObjects {
    /** Bytes that came since the last full collection, from which on another is worth its pause, a fifth of a second. */
    private static final long WORTH = 32L << 20;

    private OldObjects() {}

    /** Collect them if there may be much garbage, and return to the system what the heap needs no more. */
    public static void collect() {
        for (Iterator each = ManagementFactory.getMemoryPoolMXBeans().iterator(); each.hasNext(); ) {
            MemoryPoolMXBean pool = (MemoryPoolMXBean) each.next();
            if (pool.getName().endsWith(" Old Gen") || pool.getName().equals("Tenured Gen")) {
                MemoryUsage kept = pool.getCollectionUsage();
                if (pool.getUsage().getUsed() - (kept == null ? 0 : kept.getUsed()) > WORTH) {
                    System.gc();
                }
            }
        }
    }
}
