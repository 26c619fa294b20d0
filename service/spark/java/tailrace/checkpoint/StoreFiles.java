package tailrace.checkpoint;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/**
 * The files of Spark's own logs in a checkpoint that is in an object store, each put in its place by one request.
 *
 * <p>A put is atomic there. Spark's default writes another file first, and renames it: in a store that is a copy and a
 * removal, and with what Hadoop looks for before and after each step 25 requests, one after another, where 3 do.
 */
public class StoreFiles extends FileSystemBasedCheckpointFileManager {
    public StoreFiles(Path path, Configuration hadoop) {
        super(path, hadoop);
    }

    /** What a log has of a batch is never a folder: whether there is one is not looked for. */
    public boolean exists(Path path) {
        try {
            return isOfBatch(path) ? isFile(fs(), path) : super.exists(path);
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    public CancellableFSDataOutputStream createAtomic(Path path, boolean overwriteIfPossible) {
        return new Whole(fs(), path, overwriteIfPossible, new ByteArrayOutputStream());
    }

    private static boolean isOfBatch(Path path) {
        String log = path.getParent().getName();
        return (log.equals("offsets") || log.equals("commits")) && path.getName().matches("[0-9]+");
    }

    /** Of S3 this is one request; the newer ways to ask are two. */
    private static boolean isFile(FileSystem files, Path path) throws IOException {
        return files.isFile(path);
    }

    /** A file that is there once it is closed; until then it is in memory. The entries of logs are small. */
    static class Whole extends CancellableFSDataOutputStream {
        private final FileSystem files;
        private final Path path;
        private final boolean overwrites;
        private final ByteArrayOutputStream content;
        private boolean ended;

        Whole(FileSystem files, Path path, boolean overwrites, ByteArrayOutputStream content) {
            super(content);
            this.files = files;
            this.path = path;
            this.overwrites = overwrites;
            this.content = content;
        }

        public void cancel() {
            ended = true;
        }

        public void close() throws IOException {
            if (ended) {
                return;
            }
            ended = true;
            flush();
            if (!overwrites && isFile(files, path)) {
                throw new FileAlreadyExistsException(path + " already exists");
            }
            FSDataOutputStreamBuilder how = files.createFile(path);
            how.overwrite(true);
            how.recursive();
            // Neither the file nor a folder in its place is looked for again. Other stores do not know this.
            how.opt("fs.s3a.create.performance", "true");
            FSDataOutputStream to = (FSDataOutputStream) how.build();
            // What fails here is not closed: to close it would put what there is of it.
            to.write(content.toByteArray());
            to.close();
        }
    }
}
