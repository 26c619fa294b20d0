package tailrace.kafka;

import java.lang.reflect.Field;
import java.util.Iterator;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;

/**
 * How much a Kafka consumer asks for at a time: what a range still has, as far as that is known.
 *
 * <p>A consumer of one size either asks often for the records of a long range, or gets more than the range has, which waits
 * here for the next batch: of each partition, as many as there are. Kafka's client reads both sizes before each request, but
 * takes them from settings alone. Where they are out of reach (a client of another group protocol), they stay as set.
 */
public class FetchSizes {
    /** Records from which on their bytes say how many one has. */
    private static final long ENOUGH = 10000;

    /** What remains of the counts of earlier batches with each one. */
    private static final double KEPT = 0.8;

    /** Bytes of a record beside its key and value, where it has no headers: lengths, offset and time. */
    private static final int AROUND = 10;

    /**
     * The part of a range that is asked for at a time. An answer that has one record too many is held here as a whole until
     * the next batch, so the last piece, which may have some, is to be a small one.
     */
    private static final double SHORT_OF = 0.85;

    private final int least;
    private final int most;
    private final Object settings;
    private final Field bytesOfPartition;
    private final Field recordsOfPoll;
    private final Metric received;
    private double before = 0;
    private double sent = 0;
    private double bytes = 0;
    private double records = 0;

    /** The sizes of a consumer, between `least` and `most` bytes of a partition. */
    public FetchSizes(KafkaConsumer consumer, int least, int most) {
        this.least = least;
        this.most = most;
        Object found = null;
        Field bytes = null;
        Field polled = null;
        try {
            found = valueOf(valueOf(valueOf(consumer, "delegate"), "fetcher"), "fetchConfig");
            bytes = fieldOf(found, "fetchSize");
            polled = fieldOf(found, "maxPollRecords");
            bytes.setInt(found, bytes.getInt(found));
            polled.setInt(found, polled.getInt(found));
        } catch (ReflectiveOperationException changed) {
            found = null;
        }
        settings = found;
        bytesOfPartition = bytes;
        recordsOfPoll = polled;
        received = bytesReceived(consumer);
    }

    /** Whether the client can be told how much to ask for. */
    public boolean areReachable() {
        return settings != null && received != null;
    }

    /** Begin a batch: what was counted in those before matters less. */
    public void begin() {
        if (!areReachable()) {
            return;
        }
        sent = KEPT * sentSoFar();
        before = total();
        bytes *= KEPT;
        records *= KEPT;
    }

    /** Note that records were received, with so many bytes of keys and values. */
    public void received(int more, long size) {
        records += more;
        bytes += size;
    }

    /**
     * The bytes that a broker sends of a record, as far as that is known; 0 if it is not. What was sent counts records that
     * wait in the client, and may be more; keys and values may have been compressed.
     */
    private double bytesOfRecord() {
        return records < ENOUGH ? 0 : Math.min(bytes / records + AROUND, sentSoFar() / records);
    }

    private double sentSoFar() {
        return sent + total() - before;
    }

    private double total() {
        return ((Number) received.metricValue()).doubleValue();
    }

    /**
     * Ask for so many records of each partition, in `largest` bytes at most, and have no more than `polled` in all handed
     * over.
     */
    public void ask(long ofPartition, int largest, long polled) {
        if (!areReachable()) {
            return;
        }
        try {
            double expected = ofPartition * bytesOfRecord() * SHORT_OF;
            if (expected > 0) {
                bytesOfPartition.setInt(settings, (int) Math.max(least, Math.min(Math.min(most, largest), expected)));
            }
            recordsOfPoll.setInt(settings, (int) Math.max(1, polled));
        } catch (IllegalAccessException changed) {
            throw new IllegalStateException(changed);
        }
    }

    private static Object valueOf(Object holder, String name) throws ReflectiveOperationException {
        return fieldOf(holder, name).get(holder);
    }

    private static Field fieldOf(Object holder, String name) throws NoSuchFieldException {
        for (Class each = holder.getClass(); each != null; each = each.getSuperclass()) {
            Field[] fields = each.getDeclaredFields();
            for (int i = 0; i < fields.length; i++) {
                if (fields[i].getName().equals(name)) {
                    fields[i].setAccessible(true);
                    return fields[i];
                }
            }
        }
        throw new NoSuchFieldException(name);
    }

    /** The bytes that a consumer has received of all brokers, null if it does not count them. */
    private static Metric bytesReceived(KafkaConsumer consumer) {
        for (Iterator each = consumer.metrics().entrySet().iterator(); each.hasNext(); ) {
            Map.Entry entry = (Map.Entry) each.next();
            MetricName name = (MetricName) entry.getKey();
            if (name.name().equals("incoming-byte-total") && name.group().equals("consumer-metrics")) {
                return (Metric) entry.getValue();
            }
        }
        return null;
    }
}
