package tailrace.kafka;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.kafka010.KafkaRecordToRowConverter;
import scala.Function1;

/** Gives the records of one Kafka partition after another, each in the order of offsets. */
class KafkaReader implements PartitionReader {
    private final KafkaRanges task;
    private final Function1 toRow;
    private final Consumer consumer;
    private int number = 0;
    private Object row;
    private boolean failed = false;
    private boolean closed = false;

    KafkaReader(KafkaRanges task) {
        this.task = task;
        this.toRow = new KafkaRecordToRowConverter().toUnsafeRowProjector(task.headers);
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
        row = toRow.apply(record);
        return true;
    }

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
