package tailrace.kafka;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadMaxRows;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.kafka010.KafkaBatchInputPartition;
import org.apache.spark.sql.kafka010.KafkaSourceOffset;

/** Plans batches as Spark's source does, and hands the ranges of many Kafka partitions to a task. */
public class KafkaStream implements MicroBatchStream, SupportsAdmissionControl, ReportsSourceMetrics {
    private final MicroBatchStream spark;
    private final SupportsAdmissionControl limited;
    private final ReportsSourceMetrics measured;
    private final BlockShape shape;
    private final int readers;
    private final int source;
    private final String ends;
    private final Silence silence;
    private volatile String consumers = "";

    KafkaStream(MicroBatchStream spark, BlockShape shape, int readers, int source, String ends, Silence silence) {
        this.ends = ends;
        this.silence = silence;
        this.spark = spark;
        this.shape = shape;
        this.limited = (SupportsAdmissionControl) spark;
        this.measured = (ReportsSourceMetrics) spark;
        this.readers = readers;
        this.source = source;
    }

    /** The number that the service knows it by. */
    public int source() {
        return source;
    }

    public Offset initialOffset() {
        return spark.initialOffset();
    }

    public Offset deserializeOffset(String json) {
        return spark.deserializeOffset(json);
    }

    public ReadLimit getDefaultReadLimit() {
        return limited.getDefaultReadLimit();
    }

    public Offset latestOffset() {
        return spark.latestOffset();
    }

    public Offset latestOffset(Offset start, ReadLimit limit) {
        Map from = offsets(start);
        if (silence.lasts(from)) {
            return start;
        }
        // A query that runs one batch alone has no limit for another, which it makes if that one was done meanwhile.
        ReadLimit most = limit instanceof ReadAllAvailable ? limited.getDefaultReadLimit() : limit;
        Offset end = ends.isEmpty() ? limited.latestOffset(start, most) : boundedOffset(start, most);
        silence.searched(from, offsets(end));
        return end;
    }

    /**
     * The end of the next batch where it must not be behind what the file says now. Records behind that take no part of
     * the limit. Of a partition that the file does not have, nothing is read.
     */
    private Offset boundedOffset(Offset start, ReadLimit limit) {
        Map from = offsets(start);
        Map there = offsets(limited.latestOffset(start, ReadLimit.allAvailable()));
        Map bounds = offsets(spark.deserializeOffset(written()));
        TreeMap until = new TreeMap();
        double records = 0;
        for (Object each : there.entrySet()) {
            TopicPartition place = (TopicPartition) ((Map.Entry) each).getKey();
            Long known = (Long) from.get(place);
            Long bound = (Long) bounds.get(place);
            if (known == null && bound == null) {
                continue;
            }
            long at = known == null ? 0L : known.longValue();
            long last = ((Long) ((Map.Entry) each).getValue()).longValue();
            long end = bound == null ? at : Math.max(at, Math.min(last, bound.longValue()));
            records += end - at;
            until.put(place.topic() + "/" + place.partition(), new Object[] {place, Long.valueOf(at), Long.valueOf(end)});
        }
        double most = limit instanceof ReadMaxRows ? (double) ((ReadMaxRows) limit).maxRows() : records;
        double share = records > most ? most / records : 1;
        StringBuilder json = new StringBuilder("{");
        String topic = null;
        for (Object each : until.values()) {
            Object[] range = (Object[]) each;
            TopicPartition place = (TopicPartition) range[0];
            long at = ((Long) range[1]).longValue();
            long all = ((Long) range[2]).longValue() - at;
            // A partition with records gives one at least, so that it is never taken for idle.
            long some = most == 0 || all == 0 ? 0 : Math.min(all, Math.max(1L, (long) (all * share)));
            if (!place.topic().equals(topic)) {
                json.append(topic == null ? "\"" : "},\"").append(place.topic()).append("\":{");
            } else {
                json.append(",");
            }
            topic = place.topic();
            json.append("\"").append(place.partition()).append("\":").append(at + some);
        }
        return spark.deserializeOffset(json.append(topic == null ? "}" : "}}").toString());
    }

    private String written() {
        try {
            return new String(Files.readAllBytes(Paths.get(ends, new String[0])), StandardCharsets.UTF_8);
        } catch (IOException gone) {
            throw new UncheckedIOException(gone);
        }
    }

    private static Map offsets(Offset offset) {
        scala.collection.Map found = ((KafkaSourceOffset) offset).partitionToOffsets();
        return scala.jdk.javaapi.CollectionConverters.asJava(found);
    }

    public Offset reportLatestOffset() {
        return limited.reportLatestOffset();
    }

    public Map metrics(Optional consumed) {
        return measured.metrics(consumed);
    }

    public void commit(Offset end) {
        silence.batch();
        spark.commit(end);
    }

    public void stop() {
        silence.close();
        spark.stop();
        Consumers.close(consumers);
    }

    public String toString() {
        return spark.toString();
    }

    public PartitionReaderFactory createReaderFactory() {
        return new KafkaReaders(shape);
    }

    /** One task for each group of Kafka partitions; a partition is always of the same group. */
    public InputPartition[] planInputPartitions(Offset start, Offset end) {
        InputPartition[] ranges = spark.planInputPartitions(start, end);
        TreeMap groups = new TreeMap();
        for (int i = 0; i < ranges.length; i++) {
            KafkaBatchInputPartition range = (KafkaBatchInputPartition) ranges[i];
            TopicPartition place = range.offsetRange().topicPartition();
            // The partitions of one topic go round; of topics with few partitions each begins at another place.
            int turn = place.partition() + (place.topic().hashCode() & 0xffff);
            String group = readers > 0 ? String.format("%05d", new Object[] {turn % readers}) : place.toString();
            List members = (List) groups.get(group);
            if (members == null) {
                members = new ArrayList();
                groups.put(group, members);
            }
            members.add(new KafkaRange(range));
            consumers = (String) range.executorKafkaParams().get("group.id");
        }
        int all = ((KafkaSourceOffset) end).partitionToOffsets().size();
        int known = readers > 0 ? Math.max(1, (all + readers - 1) / readers) : 1;
        InputPartition[] planned = new InputPartition[groups.size()];
        int number = 0;
        for (Object each : groups.entrySet()) {
            Map.Entry entry = (Map.Entry) each;
            List members = (List) entry.getValue();
            Collections.sort(members);
            KafkaBatchInputPartition any = ((KafkaRange) members.get(0)).spark;
            planned[number++] = new KafkaRanges(
                    (String) entry.getKey(),
                    (KafkaRange[]) members.toArray(new KafkaRange[0]),
                    any.executorKafkaParams(),
                    known,
                    any.pollTimeoutMs(),
                    any.preferredLocations());
        }
        return planned;
    }
}

/** The records of a Kafka partition that a batch reads: from an offset to before another. */
class KafkaRange implements java.io.Serializable, Comparable {
    final TopicPartition place;
    final long from;
    final long until;
    final transient KafkaBatchInputPartition spark;

    KafkaRange(KafkaBatchInputPartition spark) {
        this.spark = spark;
        this.place = spark.offsetRange().topicPartition();
        this.from = spark.offsetRange().fromOffset();
        this.until = spark.offsetRange().untilOffset();
    }

    public int compareTo(Object other) {
        TopicPartition its = ((KafkaRange) other).place;
        int byTopic = place.topic().compareTo(its.topic());
        return byTopic != 0 ? byTopic : Integer.compare(place.partition(), its.partition());
    }
}

/** What one task reads, of how many partitions in the course of time, and how its consumer connects. */
class KafkaRanges implements InputPartition {
    final String group;
    final KafkaRange[] ranges;
    final Map properties;
    final int partitions;
    final long patience;
    final String[] locations;

    KafkaRanges(
            String group,
            KafkaRange[] ranges,
            Map properties,
            int partitions,
            long patience,
            String[] locations) {
        this.group = group;
        this.ranges = ranges;
        this.properties = properties;
        this.patience = patience;
        this.partitions = partitions;
        this.locations = locations;
    }

    public String[] preferredLocations() {
        return locations;
    }
}

class KafkaReaders implements PartitionReaderFactory {
    private final BlockShape shape;

    KafkaReaders(BlockShape shape) {
        this.shape = shape;
    }

    public PartitionReader createReader(InputPartition ranges) {
        return new KafkaReader((KafkaRanges) ranges, shape);
    }
}
