package tailrace.kafka;

import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.kafka010.KafkaSourceProvider;
import org.apache.spark.sql.types.BinaryType$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Spark's Kafka source, of which each task reads many Kafka partitions with one consumer.
 *
 * <p>Options are those of Spark's source, and some more. `source` is the number that the service
 * knows it by. `readers` is the number of tasks that read, 0 for one a Kafka
 * partition. `columns`, `records` and `bytes` say what a block holds ({@link BlockShape}). `ends` is a file with the offsets up to which batches read for now, in
 * Spark's JSON; without it they read what is there. `pause` is the number of milliseconds that a search for
 * rows may wait for one ({@link Silence}). What a batch reads, and what the checkpoint keeps of it, is Spark's
 * own.
 */
public class KafkaSource implements TableProvider {
    private final KafkaSourceProvider spark = new KafkaSourceProvider();

    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return BlockShape.SCHEMA;
    }

    public Table getTable(StructType schema, Transform[] partitioning, Map properties) {
        CaseInsensitiveStringMap options = new CaseInsensitiveStringMap(properties);
        return new KafkaTopics((SupportsRead) spark.getTable(options));
    }
}

class KafkaTopics implements SupportsRead {
    private static final String PREFIX = "kafka.";

    private final SupportsRead spark;

    KafkaTopics(SupportsRead spark) {
        this.spark = spark;
    }

    public String name() {
        return spark.name();
    }

    public StructType schema() {
        return BlockShape.SCHEMA;
    }

    public Set capabilities() {
        return Collections.singleton(TableCapability.MICRO_BATCH_READ);
    }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return new KafkaScan(
                spark.newScanBuilder(options).build(),
                new BlockShape(options),
                options.getInt("readers", 0),
                options.getInt("source", 0),
                (String) options.getOrDefault("ends", ""),
                options.getInt("pause", 0),
                properties(options));
    }

    /** Kafka's properties among the options. */
    private static Map properties(CaseInsensitiveStringMap options) {
        Map found = new HashMap();
        for (Object each : options.asCaseSensitiveMap().entrySet()) {
            Map.Entry option = (Map.Entry) each;
            String name = (String) option.getKey();
            if (name.toLowerCase().startsWith(PREFIX)) {
                found.put(name.substring(PREFIX.length()), option.getValue());
            }
        }
        return found;
    }
}

class KafkaScan implements ScanBuilder, Scan {
    private final Scan spark;
    private final BlockShape shape;
    private final int readers;
    private final int source;
    private final String ends;
    private final int pause;
    private final Map properties;

    KafkaScan(Scan spark, BlockShape shape, int readers, int source, String ends, int pause, Map properties) {
        this.pause = pause;
        this.properties = properties;
        this.spark = spark;
        this.shape = shape;
        this.readers = readers;
        this.source = source;
        this.ends = ends;
    }

    public Scan build() {
        return this;
    }

    public StructType readSchema() {
        return BlockShape.SCHEMA;
    }

    public Scan.ColumnarSupportMode columnarSupportMode() {
        return Scan.ColumnarSupportMode.UNSUPPORTED;
    }

    public MicroBatchStream toMicroBatchStream(String checkpoint) {
        MicroBatchStream stream = spark.toMicroBatchStream(checkpoint);
        return new KafkaStream(stream, shape, readers, source, ends, new Silence(properties, pause, Silence.SEARCH, Silence.BLIND));
    }
}

/** What a block holds of each record besides its place and value, and how much of a partition it holds at most. */
class BlockShape implements java.io.Serializable {
    /** The columns of a block; those that nobody asked for are empty. */
    static final StructType SCHEMA = schema();

    final boolean key;
    final boolean timestamp;
    final boolean timestampType;
    final boolean headers;
    final int mostRecords;
    final long mostBytes;

    BlockShape(CaseInsensitiveStringMap options) {
        List columns = Arrays.asList(options.get("columns").split(","));
        key = columns.contains("key");
        timestamp = columns.contains("timestamp");
        timestampType = columns.contains("timestamp_type");
        headers = columns.contains("headers");
        mostRecords = options.getInt("records", Integer.MAX_VALUE);
        mostBytes = options.getLong("bytes", Long.MAX_VALUE);
    }

    private static StructType schema() {
        String[] packed = {
            "positions", "value_lengths", "key_lengths", "keys", "timestamps", "timestamp_types",
            "header_counts", "header_name_lengths", "header_names", "header_value_lengths", "header_values"
        };
        StructField[] fields = new StructField[3 + packed.length];
        fields[0] = field("topic", StringType$.MODULE$);
        fields[1] = field("value_file", StringType$.MODULE$);
        fields[2] = field("value_block", LongType$.MODULE$);
        for (int i = 0; i < packed.length; i++) {
            fields[3 + i] = field(packed[i], BinaryType$.MODULE$);
        }
        return new StructType(fields);
    }

    private static StructField field(String name, DataType type) {
        return new StructField(name, type, true, Metadata.empty());
    }
}
