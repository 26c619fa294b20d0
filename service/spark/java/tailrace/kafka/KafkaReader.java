package tailrace.kafka;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Gives the records of one Kafka partition after another, each in the order of offsets, as blocks: rows of {@link Block}.
 *
 * <p>The values of a block are in a file that the Python worker maps; its row has their place and all else of the records.
 * What goes through Spark is copied some eight times, of which a value is spared all but one.
 */
class KafkaReader implements PartitionReader {
    /**
     * Records and bytes of a block from which on another partition begins a new one: what is small is handed over
     * together. As `runtime/record_runs.py` computes runs together: half as many are enough for it.
     */
    private static final int ENOUGH = 100000;

    private static final int ENOUGH_BYTES = 8 << 20;

    private final KafkaRanges task;
    private final int mostRecords;
    private final long mostBytes;
    private final Consumer consumer;
    private final Block block;
    private ConsumerRecord waiting = null;
    private int number = 0;
    private int runRecords = 0;
    private long runBytes = 0;
    private boolean failed = false;
    private boolean closed = false;

    KafkaReader(KafkaRanges task, BlockShape shape) {
        this.task = task;
        this.mostRecords = shape.mostRecords;
        this.mostBytes = shape.mostBytes;
        this.consumer = Consumers.take(task);
        this.block = new Block(shape, consumer.values());
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
        Consumers.use();
        failed = true;
        block.clear();
        fill();
        failed = false;
        return block.size() > 0;
    }

    /** The row of the block. */
    public Object get() {
        return block.row();
    }

    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        TaskContext context = TaskContext.get();
        if (context == null || context.isFailed() || context.isInterrupted()) {
            // Its worker may still read them.
            consumer.forgetValues();
        }
        if (failed) {
            consumer.close();
        } else {
            Consumers.giveBack(consumer);
        }
    }

    /**
     * Take records until the block has enough. A run of records of a partition ends where `runtime/record_runs.py` cuts it:
     * such a block is taken there as it is.
     */
    private void fill() {
        long bytes = 0;
        while (number < task.ranges.length) {
            ConsumerRecord record = waiting != null ? waiting : consumer.next(number);
            waiting = null;
            if (record == null) {
                number++;
                runRecords = 0;
                runBytes = 0;
                if (block.size() >= Math.min(ENOUGH, mostRecords) || bytes >= ENOUGH_BYTES) {
                    return;
                }
                continue;
            }
            if (!block.takes(record)) {
                waiting = record;
                return;
            }
            block.add(record);
            runRecords++;
            runBytes += Math.max(0, record.serializedValueSize());
            bytes += Math.max(0, record.serializedValueSize()) + Math.max(0, record.serializedKeySize());
            if (runRecords == mostRecords || runBytes >= mostBytes) {
                runRecords = 0;
                runBytes = 0;
                return;
            }
        }
    }
}

/** Records of one topic as columns, each packed into bytes, in the order of the processor (little-endian). */
class Block {
    /** Bits of a position that hold the offset; the bits above hold the partition. As in `query/record_blocks.py`. */
    private static final int OFFSET_BITS = 44;

    /** The timestamp of a record whose own is more than microseconds can say. */
    private static final long NO_TIME = Long.MIN_VALUE;

    private static final long MOST_MILLISECONDS = Long.MAX_VALUE / 1000;

    private final BlockShape shape;
    private final ValueFiles files;
    private final Packed positions = new Packed();
    private final Packed valueLengths = new Packed();
    private final Packed keyLengths = new Packed();
    private final Packed keys = new Packed();
    private final Packed timestamps = new Packed();
    private final Packed timestampTypes = new Packed();
    private final Packed headerCounts = new Packed();
    private final Packed headerNameLengths = new Packed();
    private final Packed headerNames = new Packed();
    private final Packed headerValueLengths = new Packed();
    private final Packed headerValues = new Packed();
    private final Packed[] all = {
        positions, valueLengths, keyLengths, keys, timestamps, timestampTypes,
        headerCounts, headerNameLengths, headerNames, headerValueLengths, headerValues
    };
    private String topic = null;
    private ValueFile values = null;
    private int size = 0;

    Block(BlockShape shape, ValueFiles files) {
        this.shape = shape;
        this.files = files;
    }

    int size() {
        return size;
    }

    void clear() {
        size = 0;
        topic = null;
        values = null;
        for (int i = 0; i < all.length; i++) {
            all[i].clear();
        }
    }

    /** Whether a record is of the same topic. */
    boolean takes(ConsumerRecord record) {
        return size == 0 || record.topic().equals(topic);
    }

    void add(ConsumerRecord record) {
        if (size == 0) {
            topic = record.topic();
        }
        size++;
        positions.add(((long) record.partition() << OFFSET_BITS) + record.offset());
        ByteBuffer value = (ByteBuffer) record.value();
        valueLengths.add(value == null ? -1 : value.remaining());
        if (value != null && value.hasRemaining()) {
            if (values == null) {
                values = files.take();
            }
            values.add(value);
        }
        if (shape.key) {
            addTo(keyLengths, keys, (ByteBuffer) record.key());
        }
        if (shape.timestamp) {
            long at = record.timestamp();
            timestamps.add(at > MOST_MILLISECONDS || at < -MOST_MILLISECONDS ? NO_TIME : at * 1000);
        }
        if (shape.timestampType) {
            timestampTypes.add(record.timestampType().id);
        }
        if (shape.headers) {
            int count = 0;
            for (Iterator each = record.headers().iterator(); each.hasNext(); count++) {
                Header header = (Header) each.next();
                addTo(headerNameLengths, headerNames, StandardCharsets.UTF_8.encode(header.key()));
                byte[] held = header.value();
                addTo(headerValueLengths, headerValues, held == null ? null : ByteBuffer.wrap(held));
            }
            headerCounts.add(count == 0 ? -1 : count);
        }
    }

    private static void addTo(Packed lengths, Packed bytes, ByteBuffer value) {
        lengths.add(value == null ? -1 : value.remaining());
        if (value != null) {
            bytes.add(value);
        }
    }

    /** The columns of {@link BlockShape#SCHEMA}. */
    GenericInternalRow row() {
        Object[] columns = new Object[3 + all.length];
        columns[0] = UTF8String.fromString(topic);
        columns[1] = values == null ? null : UTF8String.fromString(values.path());
        columns[2] = values == null ? null : Long.valueOf(values.number());
        for (int i = 0; i < all.length; i++) {
            columns[3 + i] = all[i].bytes();
        }
        return new GenericInternalRow(columns);
    }
}

/** Numbers and texts one behind the other. */
class Packed {
    private byte[] bytes = new byte[1024];
    private int size = 0;

    void clear() {
        size = 0;
    }

    void add(int number) {
        int at = room(4);
        for (int i = 0; i < 4; i++) {
            bytes[at + i] = (byte) (number >>> (8 * i));
        }
    }

    void add(long number) {
        int at = room(8);
        for (int i = 0; i < 8; i++) {
            bytes[at + i] = (byte) (number >>> (8 * i));
        }
    }

    void add(ByteBuffer text) {
        int at = room(text.remaining());
        text.get(text.position(), bytes, at, text.remaining());
    }

    byte[] bytes() {
        return java.util.Arrays.copyOf(bytes, size);
    }

    private int room(int more) {
        int at = size;
        size = Math.addExact(size, more);
        if (size > bytes.length) {
            bytes = java.util.Arrays.copyOf(bytes, (int) Math.max(size, Math.min(2L * bytes.length, Integer.MAX_VALUE - 8)));
        }
        return at;
    }
}
