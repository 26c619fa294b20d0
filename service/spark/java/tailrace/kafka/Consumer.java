package tailrace.kafka;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteBufferDeserializer;
import org.apache.spark.sql.kafka010.KafkaExceptions;
import org.apache.spark.util.UninterruptibleThread;
import scala.runtime.AbstractFunction0;

/**
 * A Kafka consumer of many partitions, of which one after another is read.
 *
 * <p>It fetches a partition together with those that are read next, so that small ranges take one round trip in all.
 * What it has fetched beyond a range stays here for the next batch.
 */
class Consumer {
    /**
     * Records that may still be read before a partition is fetched, too: what is small is fetched at once. Records that
     * wait are objects, which each collection moves: with 50000, collections took four times as long over 64 partitions as
     * over 2.
     */
    private static final long AHEAD = 5000;

    /** Bytes of records in memory from which on nothing but the partition that is read is fetched. */
    private static final long AHEAD_BYTES = 16L << 20;

    /**
     * Bytes of all partitions that Kafka's client asks a broker for at a time, and the least and the most of one. They are
     * garbage once they are read: more of them only outlive a collection of young objects, and are moved.
     */
    private static final int FETCH = 16 << 20;

    private static final int LEAST = 128 << 10;
    private static final int MOST = 4 << 20;

    /**
     * Records that Kafka's client hands over at a time: so many of each partition may wait here for the next batch. They are
     * read while the next ones are fetched. A quarter of them saved 40 MiB over 64 partitions of a broker on the same
     * machine, and no time.
     */
    private static final int POLL = 2000;

    /** Records that are handed over at a time at least: those of the next range may come before the last of this one. */
    private static final int FEW = 200;

    /** How long Kafka's client waits for a broker at a time, in milliseconds: so long a task that is killed goes on. */
    private static final long PIECE = 100;

    /** Milliseconds without a record, after which a partition is asked whether it still has what is to be read. */
    private static final long DOUBT = 1000;

    final String name;
    volatile long idleSince = 0;
    private final String group;
    private final KafkaConsumer kafka;
    private final long patience;
    private final Map partitions = new HashMap();
    private KafkaRange[] ranges = new KafkaRange[0];
    private Partition[] wanted = new Partition[0];
    private long heldBytes = 0;
    private final ValueFiles values = new ValueFiles();
    private final FetchSizes sizes;
    private final int poll;

    Consumer(KafkaRanges task) {
        name = nameOf(task);
        patience = task.patience;
        group = (String) task.properties.get("group.id");
        Map properties = new HashMap(task.properties);
        int share = Math.max(LEAST, Math.min(MOST, FETCH / task.partitions));
        properties.putIfAbsent("fetch.max.bytes", Integer.valueOf(FETCH));
        boolean free = properties.putIfAbsent("max.partition.fetch.bytes", Integer.valueOf(share)) == null;
        properties.putIfAbsent("max.poll.records", Integer.valueOf(POLL));
        // A topic that was deleted must not be made anew.
        properties.put("allow.auto.create.topics", "false");
        // A view of what was fetched: an array for each record would be one more copy of all.
        properties.put("key.deserializer", ByteBufferDeserializer.class);
        properties.put("value.deserializer", ByteBufferDeserializer.class);
        kafka = new KafkaConsumer(properties);
        int asked = number(properties.get("max.partition.fetch.bytes"));
        sizes = new FetchSizes(kafka, free ? LEAST : asked, free ? MOST : asked);
        poll = number(properties.get("max.poll.records"));
    }

    private static int number(Object setting) {
        return Integer.parseInt(setting.toString().trim());
    }

    static String nameOf(KafkaRanges task) {
        return task.properties.get("group.id") + " " + task.group;
    }

    /** What was fetched of a partition and not read, the offset up to which it was read, and if it is paused. */
    static class Partition {
        final TopicPartition place;
        final ArrayDeque records = new ArrayDeque();
        long next = -1;
        boolean paused = false;

        Partition(TopicPartition place) {
            this.place = place;
        }

        /** Copy what waits for the next batch: each view of a key, value or header holds all that was fetched with it. */
        void letFetchedGo() {
            for (int left = records.size(); left > 0; left--) {
                ConsumerRecord record = (ConsumerRecord) records.poll();
                records.add(
                        new ConsumerRecord(
                                record.topic(),
                                record.partition(),
                                record.offset(),
                                record.timestamp(),
                                record.timestampType(),
                                record.serializedKeySize(),
                                record.serializedValueSize(),
                                copy((ByteBuffer) record.key()),
                                copy((ByteBuffer) record.value()),
                                copy(record.headers()),
                                record.leaderEpoch()));
            }
        }

        private static Headers copy(Headers views) {
            Headers copies = new RecordHeaders();
            for (Iterator each = views.iterator(); each.hasNext(); ) {
                Header header = (Header) each.next();
                copies.add(header.key(), header.value());
            }
            return copies;
        }

        private static ByteBuffer copy(ByteBuffer view) {
            if (view == null) {
                return null;
            }
            byte[] bytes = new byte[view.remaining()];
            view.get(view.position(), bytes);
            return ByteBuffer.wrap(bytes);
        }
    }

    /** Go to the beginning of each range, where this consumer is not there already. */
    void begin(KafkaRange[] read) {
        values.begin();
        sizes.begin();
        ranges = read;
        wanted = new Partition[read.length];
        boolean added = false;
        for (int i = 0; i < read.length; i++) {
            if (!partitions.containsKey(read[i].place)) {
                partitions.put(read[i].place, new Partition(read[i].place));
                added = true;
            }
            wanted[i] = (Partition) partitions.get(read[i].place);
        }
        if (added) {
            kafka.assign(partitions.keySet());
        }
        for (int i = 0; i < read.length; i++) {
            if (wanted[i].next != read[i].from) {
                forget(wanted[i]);
                kafka.seek(wanted[i].place, read[i].from);
                wanted[i].next = read[i].from;
            }
        }
    }

    /** The next record of a range, null at its end. */
    ConsumerRecord next(int number) {
        KafkaRange range = ranges[number];
        Partition partition = wanted[number];
        while (true) {
            ConsumerRecord record = (ConsumerRecord) partition.records.peek();
            if (record != null && record.offset() < range.until) {
                partition.records.poll();
                partition.next = record.offset() + 1;
                release(record);
                return record;
            }
            if (record != null || kafka.position(range.place) >= range.until) {
                partition.next = range.until;
                partition.letFetchedGo();
                return null;
            }
            fetch(number);
        }
    }

    /** Where the values go that a task hands over. */
    ValueFiles values() {
        return values;
    }

    /** Write no more into the files that the task before has handed over. */
    void forgetValues() {
        values.remove();
    }

    void close() {
        values.remove();
        try {
            kafka.close(Duration.ZERO);
        } catch (RuntimeException unclean) {
            // Of a client that has failed there is nothing to be kept.
        }
    }

    /** Wait until there is something of the range `number`, or its end has come. */
    private void fetch(int number) {
        TopicPartition place = ranges[number].place;
        long before = kafka.position(place);
        long began = System.nanoTime();
        boolean doubted = false;
        while (true) {
            direct(number);
            ConsumerRecords polled = poll();
            keep(polled);
            if (kafka.position(place) != before) {
                return;
            }
            long waited = (System.nanoTime() - began) / 1000000;
            if (polled.isEmpty() && waited > PIECE) {
                pause();
            }
            if (waited > DOUBT && !doubted) {
                doubted = true;
                check(number, before);
            }
            if (waited > patience) {
                throw new TimeoutException(place + " gave nothing from " + before + " on for " + patience + " ms");
            }
        }
    }

    /** Have fetched what is missing of a range, and of those after it while that is little. */
    private void direct(int number) {
        Set fetched = new HashSet();
        long ahead = 0;
        long missing = 0;
        for (int i = number; i < ranges.length && (i == number || (ahead <= AHEAD && heldBytes <= AHEAD_BYTES)); i++) {
            TopicPartition place = ranges[i].place;
            long more = ranges[i].until - kafka.position(place);
            if (more > 0) {
                fetched.add(place);
                missing += more;
            }
            ahead += ranges[i].until - wanted[i].next;
        }
        long left = ranges[number].until - kafka.position(ranges[number].place);
        long polled = missing <= poll ? missing : Math.min(Math.max(left, FEW), poll);
        sizes.ask(left, FETCH / Math.max(1, fetched.size()), polled);
        List paused = new ArrayList();
        List resumed = new ArrayList();
        for (Iterator each = partitions.values().iterator(); each.hasNext(); ) {
            Partition partition = (Partition) each.next();
            boolean pause = !fetched.contains(partition.place);
            if (pause != partition.paused) {
                (pause ? paused : resumed).add(partition.place);
                partition.paused = pause;
            }
        }
        if (!paused.isEmpty()) {
            kafka.pause(paused);
        }
        if (!resumed.isEmpty()) {
            kafka.resume(resumed);
        }
    }

    private ConsumerRecords poll() {
        if (Thread.currentThread().isInterrupted()) {
            throw new InterruptException("the task was ended");
        }
        try {
            Poll poll = new Poll(kafka);
            // Kafka's client may be left in pieces by an interrupt.
            if (Thread.currentThread() instanceof UninterruptibleThread) {
                return (ConsumerRecords) ((UninterruptibleThread) Thread.currentThread()).runUninterruptibly(poll);
            }
            return (ConsumerRecords) poll.apply();
        } catch (OffsetOutOfRangeException lost) {
            for (int i = 0; i < ranges.length; i++) {
                Object offset = lost.offsetOutOfRangePartitions().get(ranges[i].place);
                if (offset != null) {
                    throw gone(i, ((Long) offset).longValue(), lost);
                }
            }
            throw lost;
        }
    }

    static class Poll extends AbstractFunction0 {
        private final KafkaConsumer kafka;

        Poll(KafkaConsumer kafka) {
            this.kafka = kafka;
        }

        public Object apply() {
            return kafka.poll(Duration.ofMillis(PIECE));
        }
    }

    private void keep(ConsumerRecords polled) {
        for (Iterator each = polled.partitions().iterator(); each.hasNext(); ) {
            TopicPartition place = (TopicPartition) each.next();
            List records = polled.records(place);
            ((Partition) partitions.get(place)).records.addAll(records);
            long bytes = 0;
            for (int i = 0; i < records.size(); i++) {
                bytes += size((ConsumerRecord) records.get(i));
            }
            heldBytes += bytes;
            sizes.received(records.size(), bytes);
        }
    }

    private void release(ConsumerRecord record) {
        heldBytes -= size(record);
    }

    private void forget(Partition partition) {
        for (Iterator each = partition.records.iterator(); each.hasNext(); ) {
            release((ConsumerRecord) each.next());
        }
        partition.records.clear();
    }

    private static long size(ConsumerRecord record) {
        return Math.max(0, record.serializedKeySize()) + Math.max(0, record.serializedValueSize());
    }

    private void pause() {
        try {
            Thread.sleep(PIECE / 10);
        } catch (InterruptedException ended) {
            throw new InterruptException(ended);
        }
    }

    /** A partition that ends before its range was cut after a failure of its brokers: what is missing will not come. */
    private void check(int number, long position) {
        TopicPartition place = ranges[number].place;
        Map ends = kafka.endOffsets(Collections.singleton(place), Duration.ofMillis(patience));
        if (position >= ((Long) ends.get(place)).longValue()) {
            throw gone(number, position, null);
        }
    }

    private RuntimeException gone(int number, long from, Throwable cause) {
        KafkaRange range = ranges[number];
        return KafkaExceptions.couldNotReadOffsetRange(from, range.until, range.place, group, cause);
    }
}
