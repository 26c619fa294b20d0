package tailrace.kafka;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.kafka010.KafkaRecordToRowConverter;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;

/** Gives the records of one Kafka partition after another, each in the order of offsets, as rows of some columns. */
class KafkaReader implements PartitionReader {
    private final KafkaRanges task;
    private final Cell[] cells;
    private final Consumer consumer;
    private final Object[] values;
    private final InternalRow row;
    private int number = 0;
    private boolean failed = false;
    private boolean closed = false;

    KafkaReader(KafkaRanges task, StructType schema) {
        this.task = task;
        this.cells = Cell.of(schema, KafkaRecordToRowConverter.kafkaSchema(true));
        this.values = new Object[cells.length];
        this.row = new GenericInternalRow(values);
        this.consumer = Consumers.take(task);
        boolean ready = false;
        try {
            consumer.begin(task.ranges);
            ready = true;
        } finally {
            if (!ready) {
                consumer.close();
            }
        }
    }

    public synchronized boolean next() {
        if (closed) {
            return false;
        }
        ConsumerRecord record = null;
        failed = true;
        while (record == null && number < task.ranges.length) {
            record = consumer.next(number);
            if (record == null) {
                number++;
            }
        }
        failed = false;
        if (record == null) {
            return false;
        }
        for (int i = 0; i < cells.length; i++) {
            values[i] = cells[i].of(record);
        }
        return true;
    }

    /** The row of the record, good until the next one: the same object each time. */
    public Object get() {
        return row;
    }

    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        if (failed) {
            consumer.close();
        } else {
            Consumers.giveBack(consumer);
        }
    }
}

/** A column of a record. Those that nearly every query reads are taken from it, the others as Spark's source has them. */
abstract class Cell {
    /** The name of the column that holds partition and offset in one number. */
    static final String POSITION = "position";

    /** Bits of a position that hold the offset; the bits above hold the partition. */
    static final int OFFSET_BITS = 44;

    abstract Object of(ConsumerRecord record);

    /** The cells of a row of `schema`; `spark` is the schema of Spark's source, with headers. */
    static Cell[] of(StructType schema, StructType spark) {
        String[] names = schema.fieldNames();
        Cell[] cells = new Cell[names.length];
        for (int i = 0; i < names.length; i++) {
            if (names[i].equals("value")) {
                cells[i] = new Value();
            } else if (names[i].equals("key")) {
                cells[i] = new Key();
            } else if (names[i].equals(POSITION)) {
                cells[i] = new Position();
            } else if (names[i].equals("topic")) {
                cells[i] = new Topic();
            } else if (names[i].equals("timestamp")) {
                cells[i] = new Timestamp();
            } else {
                int place = spark.fieldIndex(names[i]);
                cells[i] = new Other(place, spark.apply(place).dataType());
            }
        }
        return cells;
    }

    static class Value extends Cell {
        Object of(ConsumerRecord record) {
            return record.value();
        }
    }

    static class Key extends Cell {
        Object of(ConsumerRecord record) {
            return record.key();
        }
    }

    static class Position extends Cell {
        Object of(ConsumerRecord record) {
            return Long.valueOf(((long) record.partition() << OFFSET_BITS) + record.offset());
        }
    }

    static class Topic extends Cell {
        private String name = null;
        private UTF8String text = null;

        Object of(ConsumerRecord record) {
            if (!record.topic().equals(name)) {
                name = record.topic();
                text = UTF8String.fromString(name);
            }
            return text;
        }
    }

    /** Microseconds; none where they are more than a number holds: Spark's own source fails there. */
    static class Timestamp extends Cell {
        private static final long MOST = Long.MAX_VALUE / 1000;

        Object of(ConsumerRecord record) {
            long milliseconds = record.timestamp();
            return milliseconds > MOST || milliseconds < -MOST ? null : Long.valueOf(milliseconds * 1000);
        }
    }

    static class Other extends Cell {
        private final Function1 toRow = new KafkaRecordToRowConverter().toInternalRowWithHeaders();
        private final int place;
        private final DataType type;

        Other(int place, DataType type) {
            this.place = place;
            this.type = type;
        }

        Object of(ConsumerRecord record) {
            return ((InternalRow) toRow.apply(record)).get(place, type);
        }
    }
}
