package tailrace.placement;

import java.lang.reflect.Field;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.Dependency;
import org.apache.spark.OneToOneDependency;
import org.apache.spark.Partition;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.execution.ShuffledRowRDD;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.util.CollectionAccumulator;

/**
 * Where the shards of a query were served last: the executor that has copies of their blocks, to which Spark is asked to
 * bring their next tasks.
 *
 * <p>It is a wish. A task that runs elsewhere, since its executor is busy or gone, fetches the blocks that it touches, and
 * that is where the shard is served from then on. Nothing but time depends on it.
 */
public class Placement {
    private static final Map QUERIES = new ConcurrentHashMap();

    private final Map places = new ConcurrentHashMap();

    private Placement() {}

    /** That of a query of this driver, whose later runs go on with it. */
    public static Placement of(String query) {
        Placement fresh = new Placement();
        Placement known = (Placement) QUERIES.putIfAbsent(query, fresh);
        return known == null ? fresh : known;
    }

    /**
     * Have the tasks of each shard run where its last one did. Returns what `learn` needs to know where they have run;
     * null where the driver runs all tasks itself.
     *
     * <p>`rows` are those of the last level, and are changed: each level reads its shuffle through `PlacedShards`. Spark
     * plans a shuffle as a whole, and it asks none of its parts where a task had better run.
     */
    public CollectionAccumulator place(RDD rows) {
        if (rows.context().isLocal()) {
            return null;
        }
        CollectionAccumulator reported = rows.context().collectionAccumulator();
        placeBehind(rows, 0, reported);
        return reported;
    }

    /** The tasks of a batch are done: remember where. */
    public void learn(CollectionAccumulator reported) {
        if (reported != null) {
            for (Object each : reported.value()) {
                String[] shard = (String[]) each;
                places.put(shard[0], shard[1]);
            }
        }
    }

    /** Where a shard was served last, as Spark writes the place of a task; null where that is not known. */
    String place(String shard) {
        return (String) places.get(shard);
    }

    private void placeBehind(RDD rdd, int level, CollectionAccumulator reported) {
        scala.collection.immutable.Seq dependencies = rdd.dependencies();
        for (int i = 0; i < dependencies.size(); i++) {
            Dependency each = (Dependency) dependencies.apply(i);
            if (each instanceof OneToOneDependency && each.rdd() instanceof ShuffledRowRDD) {
                PlacedShards placed = new PlacedShards(each.rdd(), this, level, reported);
                readThrough(rdd, new OneToOneDependency(placed));
                Dependency shuffle = (Dependency) each.rdd().dependencies().apply(0);
                placeBehind(((ShuffleDependency) shuffle).rdd(), level + 1, reported);
            } else {
                placeBehind(each.rdd(), level, reported);
            }
        }
    }

    /** Have `rdd`, which reads one other, read that through `dependency`. */
    private static void readThrough(RDD rdd, OneToOneDependency dependency) {
        try {
            Field field = RDD.class.getDeclaredField("dependencies_");
            field.setAccessible(true);
            field.set(rdd, scala.jdk.javaapi.CollectionConverters.asScala(
                    java.util.Collections.singletonList(dependency)).toList());
        } catch (ReflectiveOperationException changed) {
            throw new IllegalStateException(changed);
        }
    }
}

/** The envelopes of the shards of a level, in tasks that would be where those of the batch before were. */
class PlacedShards extends RDD {
    private final transient Placement placement;
    private final int level;
    private final CollectionAccumulator reported;

    PlacedShards(RDD envelopes, Placement placement, int level, CollectionAccumulator reported) {
        super(envelopes, envelopes.elementClassTag());
        this.placement = placement;
        this.level = level;
        this.reported = reported;
    }

    public Partition[] getPartitions() {
        return envelopes().partitions();
    }

    public scala.collection.Iterator compute(Partition shard, TaskContext task) {
        BlockManagerId here = SparkEnv.get().blockManager().blockManagerId();
        reported.add(new String[] {name(shard), "executor_" + here.host() + "_" + here.executorId()});
        return envelopes().iterator(shard, task);
    }

    public scala.collection.immutable.Seq getPreferredLocations(Partition shard) {
        String place = placement.place(name(shard));
        java.util.List found = place == null
                ? java.util.Collections.emptyList()
                : java.util.Collections.singletonList(place);
        return scala.jdk.javaapi.CollectionConverters.asScala(found).toList();
    }

    private RDD envelopes() {
        return ((Dependency) dependencies().apply(0)).rdd();
    }

    private String name(Partition shard) {
        return level + "/" + shard.index();
    }
}
