package tailrace.kafka;

import java.time.Duration;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Tells whether records have come behind what a query has read of its partitions.
 *
 * <p>A search for the end of every partition takes milliseconds of a processor here and at the broker. While there is
 * nothing to read, a consumer waits at the ends instead, and the broker answers it as soon as a record is there. It is a
 * help only: a search that finds more is always right, and there is one a second in any case, for what no consumer is told
 * of: new partitions, and ends of transactions without a record.
 */
public class Silence {
    /** Milliseconds after which a search is made whatever the consumer says. */
    static final int SEARCH = 1000;

    /** Nanoseconds without a consumer after one that has failed, or that has reported records which no batch may read. */
    private static final long BLIND = 5000L * 1000 * 1000;

    /** Milliseconds that a broker waits for a record before it answers that there is none. */
    private static final int ANSWER = 500;

    private final Map properties;
    private final Duration pause;
    private final long search;
    private KafkaConsumer consumer = null;
    private Map ends = null;
    private Map assigned = null;
    private boolean waiting = false;
    private boolean alarmed = false;
    private boolean asked = false;
    private long searched = System.nanoTime();
    private long blindUntil = System.nanoTime();

    /**
     * `properties` are those of Kafka's consumers, `pause` the milliseconds that a question may wait for its answer,
     * `search` those after which a search is made in any case.
     */
    public Silence(Map properties, int pause, int search) {
        this.properties = new HashMap(properties);
        this.properties.put("key.deserializer", ByteArrayDeserializer.class);
        this.properties.put("value.deserializer", ByteArrayDeserializer.class);
        this.properties.put("enable.auto.commit", "false");
        // Where an end is not there any more, a search says what to do.
        this.properties.put("auto.offset.reset", "none");
        this.properties.put("fetch.min.bytes", "1");
        this.properties.put("fetch.max.wait.ms", Integer.toString(ANSWER));
        // One record is enough to know that there are some.
        this.properties.put("fetch.max.bytes", "1");
        this.properties.put("max.partition.fetch.bytes", "1");
        this.properties.put("max.poll.records", "1");
        this.properties.put("receive.buffer.bytes", "65536");
        this.pause = Duration.ofMillis(pause);
        this.search = search * 1000000L;
    }

    /**
     * Whether nothing has come behind `offsets`. The first question after a batch is answered at once, so that other
     * sources of the query are not held up; further ones are answered when a record comes, or after the pause.
     */
    public synchronized boolean lasts(Map offsets) {
        Duration most = asked ? pause : Duration.ZERO;
        asked = true;
        long now = System.nanoTime();
        if (waiting && !ends.equals(offsets)) {
            waiting = false;
        }
        try {
            if (!waiting) {
                if (now < blindUntil) {
                    Thread.sleep(most.toMillis());
                }
                return false;
            }
            if (now - searched > search) {
                return false;
            }
            alarmed = !consumer.poll(most).isEmpty();
            waiting = !alarmed;
        } catch (InterruptedException ending) {
            Thread.currentThread().interrupt();
            return false;
        } catch (InterruptException ending) {
            close();
        } catch (RuntimeException failed) {
            fail();
        }
        return waiting;
    }

    /** Note that a search has found `found` where `offsets` were read. */
    public synchronized void searched(Map offsets, Map found) {
        boolean early = alarmed;
        alarmed = false;
        searched = System.nanoTime();
        if (!found.equals(offsets) || offsets.isEmpty()) {
            waiting = false;
            return;
        }
        if (early) {
            waiting = false;
            blindUntil = searched + BLIND;
        }
        if (waiting || searched < blindUntil) {
            return;
        }
        try {
            await(offsets);
        } catch (RuntimeException failed) {
            fail();
        }
    }

    private void await(Map offsets) {
        if (consumer == null) {
            consumer = new KafkaConsumer(properties);
            assigned = null;
        }
        if (assigned == null || !assigned.keySet().equals(offsets.keySet())) {
            consumer.assign(offsets.keySet());
        }
        for (Iterator each = offsets.entrySet().iterator(); each.hasNext(); ) {
            Map.Entry entry = (Map.Entry) each.next();
            consumer.seek((TopicPartition) entry.getKey(), ((Number) entry.getValue()).longValue());
        }
        assigned = offsets;
        ends = offsets;
        waiting = true;
    }

    /** Note that there is a batch, after which the first question is answered at once. */
    public synchronized void batch() {
        asked = false;
    }

    private void fail() {
        close();
        blindUntil = System.nanoTime() + BLIND;
    }

    /** Close the consumer; it is made again where it is needed. */
    public synchronized void close() {
        waiting = false;
        KafkaConsumer gone = consumer;
        consumer = null;
        if (gone != null) {
            try {
                gone.close(Duration.ZERO);
            } catch (RuntimeException failed) {
                // Its connections are closed by then.
            }
        }
    }
}
