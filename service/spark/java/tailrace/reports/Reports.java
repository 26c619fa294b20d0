package tailrace.reports;

import java.nio.ByteBuffer;
import java.util.List;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.util.CollectionAccumulator;
import tailrace.placement.Placement;

/** What the tasks of a batch report: the one column, binary, of the rows that Spark hands over at the end of a batch. */
public class Reports {
    private Reports() {}

    /**
     * Run the tasks of a batch of `query`, its shards where they were in the batch before, and return what each has
     * reported, one behind another, each behind its length. Of a list py4j would fetch each by itself, and the exception
     * at its end, about which PySpark asks sixty questions.
     *
     * <p>The rows are those of a plan that is made already. `Dataset.collect` would plan them as a query of its own, and
     * tell all listeners of it.
     */
    public static byte[] collect(Dataset rows, String query) {
        RDD planned = ((LogicalRDD) rows.queryExecution().logical()).rdd();
        Placement placement = Placement.of(query);
        CollectionAccumulator reported = placement.place(planned);
        List reports = planned.toJavaRDD().map(new Copied()).collect();
        placement.learn(reported);
        return packed(reports);
    }

    private static byte[] packed(List reports) {
        int size = 0;
        for (int i = 0; i < reports.size(); i++) {
            size = Math.addExact(size, Math.addExact(4, ((byte[]) reports.get(i)).length));
        }
        ByteBuffer all = ByteBuffer.allocate(size);
        for (int i = 0; i < reports.size(); i++) {
            byte[] report = (byte[]) reports.get(i);
            all.putInt(report.length).put(report);
        }
        return all.array();
    }

    /** The bytes of a row, of which Spark reuses the memory. */
    static class Copied implements Function {
        public Object call(Object row) {
            return ((InternalRow) row).getBinary(0);
        }
    }
}
