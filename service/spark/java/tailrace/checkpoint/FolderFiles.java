package tailrace.checkpoint;

import java.io.IOException;
import java.nio.file.Files;
import java.util.HashSet;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/**
 * The files of Spark's own logs in a checkpoint that is a folder, put in their place by a rename.
 *
 * <p>Hadoop sets the permissions of each file that it makes by a process, chmod, unless a native library of its own is
 * there: twice a batch, some milliseconds of two cores each. Here Java sets them.
 */
public class FolderFiles extends FileSystemBasedCheckpointFileManager {
    public FolderFiles(Path path, Configuration hadoop) {
        super(path, without(hadoop));
    }

    private static Configuration without(Configuration hadoop) {
        Configuration ours = new Configuration(hadoop);
        ours.set("fs.file.impl", WithoutProcesses.class.getName());
        ours.setBoolean("fs.file.impl.disable.cache", true);
        return ours;
    }

    /** Hadoop's local file system with checksums, over one that starts no process for permissions. */
    public static class WithoutProcesses extends LocalFileSystem {
        public WithoutProcesses() {
            super(new Raw());
        }
    }

    static class Raw extends RawLocalFileSystem {
        public void setPermission(Path path, FsPermission permission) throws IOException {
            if (permission.getStickyBit()) {
                super.setPermission(path, permission);
                return;
            }
            Files.setPosixFilePermissions(
                    pathToFile(path).toPath(),
                    java.nio.file.attribute.PosixFilePermissions.fromString(text(permission)));
        }

        private static String text(FsPermission permission) {
            return permission.getUserAction().SYMBOL + permission.getGroupAction().SYMBOL + permission.getOtherAction().SYMBOL;
        }
    }
}
