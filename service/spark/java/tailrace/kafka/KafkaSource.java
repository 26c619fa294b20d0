package tailrace.kafka;

import java.util.Collections;
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
import org.apache.spark.sql.kafka010.KafkaRecordToRowConverter;
import org.apache.spark.sql.kafka010.KafkaSourceProvider;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Spark's Kafka source, of which each task reads many Kafka partitions with one consumer.
 *
 * <p>Options are those of Spark's source, and four more. `source` is the number that the service
 * knows it by. `readers` is the number of tasks that read, 0 for one a Kafka
 * partition. `columns` are those of a row, with commas between them: some of those of Spark's source, and `position`,
 * which holds partition and offset in one number. `ends` is a file with the offsets up to which batches read for now, in
 * Spark's JSON; without it they read what is there. What a batch reads, and what the checkpoint keeps of it, is Spark's
 * own.
 */
public class KafkaSource implements TableProvider {
    private final KafkaSourceProvider spark = new KafkaSourceProvider();

    public StructType inferSchema(CaseInsensitiveStringMap options) {
        StructType all = KafkaRecordToRowConverter.kafkaSchema(true);
        String[] names = options.get("columns").split(",");
        StructField[] fields = new StructField[names.length];
        for (int i = 0; i < names.length; i++) {
            fields[i] = names[i].equals(Cell.POSITION)
                    ? new StructField(names[i], LongType$.MODULE$, true, Metadata.empty())
                    : all.apply(names[i]);
        }
        return new StructType(fields);
    }

    public Table getTable(StructType schema, Transform[] partitioning, Map properties) {
        CaseInsensitiveStringMap options = new CaseInsensitiveStringMap(properties);
        return new KafkaTopics((SupportsRead) spark.getTable(options), inferSchema(options));
    }
}

class KafkaTopics implements SupportsRead {
    private final SupportsRead spark;
    private final StructType schema;

    KafkaTopics(SupportsRead spark, StructType schema) {
        this.spark = spark;
        this.schema = schema;
    }

    public String name() {
        return spark.name();
    }

    public StructType schema() {
        return schema;
    }

    public Set capabilities() {
        return Collections.singleton(TableCapability.MICRO_BATCH_READ);
    }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return new KafkaScan(
                spark.newScanBuilder(options).build(),
                schema,
                options.getInt("readers", 0),
                options.getInt("source", 0),
                (String) options.getOrDefault("ends", ""));
    }
}

class KafkaScan implements ScanBuilder, Scan {
    private final Scan spark;
    private final StructType schema;
    private final int readers;
    private final int source;
    private final String ends;

    KafkaScan(Scan spark, StructType schema, int readers, int source, String ends) {
        this.spark = spark;
        this.schema = schema;
        this.readers = readers;
        this.source = source;
        this.ends = ends;
    }

    public Scan build() {
        return this;
    }

    public StructType readSchema() {
        return schema;
    }

    public Scan.ColumnarSupportMode columnarSupportMode() {
        return Scan.ColumnarSupportMode.UNSUPPORTED;
    }

    public MicroBatchStream toMicroBatchStream(String checkpoint) {
        return new KafkaStream(spark.toMicroBatchStream(checkpoint), schema, readers, source, ends);
    }
}
