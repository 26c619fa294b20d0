package tailrace.kafka;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.attribute.FileAttribute;
import java.util.ArrayList;
import java.util.List;

/**
 * The values of a block of records, one behind the other, in a file that the task's Python worker maps too.
 *
 * <p>Before them is a page in which the worker says which block it needs no more, and whether it computes. As in
 * `query/value_files.py`.
 */
class ValueFile {
    /** Bytes by which the file grows, and of one mapping. */
    static final int PIECE = 1 << 20;

    /** Bytes before the first value. */
    static final int HEADER = 4096;

    private static final int FREED = 0;
    private static final int COMPUTING = 8;

    /** Tasks that have found it not free. */
    int unused = 0;

    private final File file;
    private final FileChannel channel;
    private final MappedByteBuffer header;
    private final List pieces = new ArrayList();
    private long end = 0;
    private long number = 0;

    /** Make a file. Throws UncheckedIOException where the disk is full. */
    ValueFile() {
        try {
            // Not one of File, which others on this machine could read.
            file = Files.createTempFile("values-", ".bin", new FileAttribute[0]).toFile();
            channel = new RandomAccessFile(file, "rw").getChannel();
            write(0, HEADER);
            header = channel.map(FileChannel.MapMode.READ_WRITE, 0, HEADER);
            header.order(ByteOrder.LITTLE_ENDIAN);
        } catch (IOException full) {
            throw failed(full);
        }
    }

    String path() {
        return file.getPath();
    }

    /** The block that is in it: the first is 1. */
    long number() {
        return number;
    }

    /** Bytes of its values. */
    long end() {
        return end;
    }

    /** Bytes that it has room for. */
    long size() {
        return (long) pieces.size() * PIECE;
    }

    /** Whether the worker needs the block no more that is in it. */
    boolean free() {
        return header.getLong(FREED) == number;
    }

    /** Whether the worker that has the block computes, and neither waits for records nor hands rows on. */
    boolean computing() {
        return header.getLong(COMPUTING) == number;
    }

    /** Begin with another block. */
    void begin() {
        number++;
        end = 0;
    }

    /** Put a value behind the others. Throws UncheckedIOException where the disk is full. */
    void add(ByteBuffer value) {
        int from = value.position();
        while (from < value.limit()) {
            int at = (int) (end % PIECE);
            int length = Math.min(value.limit() - from, PIECE - at);
            piece().put(at, value, from, length);
            from += length;
            end += length;
        }
    }

    /** Give the file up with its values, which the worker has freed: it may still write into the header. */
    void empty() {
        try {
            channel.truncate(HEADER);
        } catch (IOException unclean) {
            // The memory is freed when the worker maps the file no more.
        }
        remove();
    }

    /** Give the file up: who maps it keeps what is there. */
    void remove() {
        try {
            channel.close();
        } catch (IOException unclean) {
            // Nothing is read from there any more.
        }
        file.delete();
    }

    /** What the next byte goes into. */
    private MappedByteBuffer piece() {
        int number = (int) (end / PIECE);
        if (number == pieces.size()) {
            long start = HEADER + size();
            try {
                // Written, not only mapped: on a full disk this is an error. To touch a page without a place ends a JVM.
                write(start, PIECE);
                pieces.add(channel.map(FileChannel.MapMode.READ_WRITE, start, PIECE));
            } catch (IOException full) {
                throw failed(full);
            }
        }
        return (MappedByteBuffer) pieces.get(number);
    }

    private void write(long start, int bytes) throws IOException {
        ByteBuffer zeros = ByteBuffer.allocate(bytes);
        while (zeros.hasRemaining()) {
            channel.write(zeros, start + zeros.position());
        }
    }

    private static UncheckedIOException failed(IOException full) {
        return new UncheckedIOException("a file for values of Kafka records: " + full.getMessage(), full);
    }
}
