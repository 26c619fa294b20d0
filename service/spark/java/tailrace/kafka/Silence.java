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

    /**
     * Milliseconds without a consumer after one that has failed, or that has reported records of which a search finds none: a
     * source that is held, or that ends before them.
     */
    static final int BLIND = 5000;

    /** Milliseconds that a broker waits for a record before it answers that there is none. */
    private static final int ANSWER = 500;

    private final Map properties;
    private final Duration pause;
    private final long searchEvery;
    private final long blind;
    private KafkaConsumer consumer = null;
    private Map waitedAt = null;
    private boolean waiting = false;
    private boolean alarmed = false;
    private boolean askedSinceBatch = false;
    private long lastSearch = System.nanoTime();
    private long blindUntil = System.nanoTime();

    /**
     * `properties` are those of Kafka's consumers, `pause` the milliseconds that a question may wait for its answer,
     * `search` those after which a search is made in any case, `blind` those without a consumer after one that was no help.
     */
    public Silence(Map properties, int pause, int search, int blind) {
        this.properties = new HashMap(properties);
        this.properties.put("key.deserializer", ByteArrayDeserializer.class);
        this.properties.put("value.deserializer", ByteArrayDeserializer.class);
        this.properties.put("enable.auto.commit", "false");
        // Where an end is not there any more, a search says what to do.
        this.properties.put("auto.offset.reset", "none");
        // A topic that was deleted must not be made anew.
        this.properties.put("allow.auto.create.topics", "false");
        if (this.properties.containsKey("client.id")) {
            this.properties.put("client.id", this.properties.get("client.id") + "-waiting");
        }
        this.properties.put("fetch.min.bytes", "1");
        this.properties.put("fetch.max.wait.ms", Integer.toString(ANSWER));
        // One batch of records is enough to know that there are some. All of it is handed over: of a partition of which some
        // is left, the client would not ask for more.
        this.properties.put("fetch.max.bytes", "1");
        this.properties.put("max.partition.fetch.bytes", "1");
        this.properties.put("max.poll.records", Integer.toString(Integer.MAX_VALUE));
        this.properties.put("receive.buffer.bytes", "65536");
        this.pause = Duration.ofMillis(pause);
        this.searchEvery = search * 1000000L;
        this.blind = blind * 1000000L;
    }

    /**
     * Whether nothing has come behind `offsets`. After a batch there is a search first: so while other sources have rows, each
     * batch is planned with the ends that are there. A further question is answered when a record comes, or after the pause.
     */
    public synchronized boolean lasts(Map offsets) {
        if (!askedSinceBatch) {
            askedSinceBatch = true;
            return false;
        }
        long now = System.nanoTime();
        if (waiting && !waitedAt.equals(offsets)) {
            waiting = false;
        }
        try {
            if (!waiting) {
                if (now < blindUntil) {
                    Thread.sleep(pause.toMillis());
                }
                return false;
            }
            if (now - lastSearch > searchEvery) {
                return false;
            }
            alarmed = !consumer.poll(pause).isEmpty();
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
        lastSearch = System.nanoTime();
        if (!found.equals(offsets) || offsets.isEmpty()) {
            waiting = false;
            return;
        }
        if (early) {
            waiting = false;
            blindUntil = lastSearch + blind;
        }
        if ((waiting && waitedAt.equals(offsets)) || lastSearch < blindUntil) {
            return;
        }
        try {
            standAt(offsets);
        } catch (RuntimeException failed) {
            fail();
        }
    }

    private void standAt(Map offsets) {
        if (consumer == null) {
            consumer = new KafkaConsumer(properties);
        }
        if (!consumer.assignment().equals(offsets.keySet())) {
            consumer.assign(offsets.keySet());
        }
        for (Iterator each = offsets.entrySet().iterator(); each.hasNext(); ) {
            Map.Entry entry = (Map.Entry) each.next();
            consumer.seek((TopicPartition) entry.getKey(), ((Number) entry.getValue()).longValue());
        }
        waitedAt = offsets;
        waiting = true;
    }

    /** Note that there is a batch, after which there is a search first. */
    public synchronized void batch() {
        askedSinceBatch = false;
    }

    private void fail() {
        close();
        blindUntil = System.nanoTime() + blind;
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
                // It holds nothing that must be written, and its connections are closed.
            }
        }
    }
}
