package tailrace.kafka;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.errors.InterruptException;

/**
 * The files of one consumer through which values go to the Python worker: one is read there while the next is filled.
 *
 * <p>A file is written over when the worker has said that it needs its block no more. So memory that was touched once
 * stays mapped on both sides, and a task that reads much keeps two blocks of it.
 */
class ValueFiles {
    /** Files from which on a free one is waited for, while the worker computes. */
    private static final int ENOUGH = 2;

    /** How long to wait for a free file, in nanoseconds: a worker that was killed does not say that it is done. */
    private static final long PATIENCE = 1000L * 1000 * 1000;

    /** Tasks after which files are made anew that are more than four times as large as any of them needed. */
    private static final int TASKS = 200;

    private final List files = new ArrayList();
    private int tasks = 0;
    private long most = 0;

    /** Begin with a task. What the two before have handed over and nobody has given back is given up. */
    void begin() {
        for (int i = files.size() - 1; i >= 0; i--) {
            ValueFile file = (ValueFile) files.get(i);
            most = Math.max(most, file.end());
            if (file.free()) {
                file.unused = 0;
            } else if (++file.unused > 2) {
                files.remove(i);
                file.remove();
            }
        }
        if (++tasks >= TASKS) {
            for (int i = files.size() - 1; i >= 0; i--) {
                if (((ValueFile) files.get(i)).size() / 4 > Math.max(most, ValueFile.PIECE)) {
                    ((ValueFile) files.remove(i)).remove();
                }
            }
            tasks = 0;
            most = 0;
        }
    }

    /** A file for the values of the next block. */
    ValueFile take() {
        long began = System.nanoTime();
        while (true) {
            boolean computing = false;
            for (int i = 0; i < files.size(); i++) {
                ValueFile file = (ValueFile) files.get(i);
                if (file.free()) {
                    file.begin();
                    return file;
                }
                computing |= file.computing();
            }
            if (files.size() < ENOUGH || !computing || System.nanoTime() - began > PATIENCE) {
                ValueFile file = new ValueFile();
                files.add(file);
                file.begin();
                return file;
            }
            try {
                Thread.sleep(1);
            } catch (InterruptedException ended) {
                throw new InterruptException(ended);
            }
        }
    }

    /** Give back the memory of what nobody needs: the worker maps it until its next task, and would hold it. */
    void rest() {
        for (int i = files.size() - 1; i >= 0; i--) {
            ValueFile file = (ValueFile) files.get(i);
            if (file.free()) {
                files.remove(i);
                file.empty();
            }
        }
    }

    /** Write no more into any: who maps one keeps what is there. */
    void remove() {
        for (int i = 0; i < files.size(); i++) {
            ((ValueFile) files.get(i)).remove();
        }
        files.clear();
    }
}
