import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;

/** One small cluster in this process for many short jobs, each of which would otherwise start one of its own. */
final class Cluster {
    private static final int SLOTS = 8;
    private static MiniCluster cluster;

    private Cluster() {
    }

    /** Makes an error that main does not handle end the process, whose other threads would keep it alive. */
    static void endWithMain() {
        Thread.currentThread().setUncaughtExceptionHandler((thread, failure) -> {
            failure.printStackTrace();
            Runtime.getRuntime().halt(1);
        });
    }

    /** Settings that send jobs to the cluster, which is started the first time. */
    static synchronized Configuration settings(String zone) throws Exception {
        if (cluster == null) {
            Configuration memory = new Configuration();
            memory.setString("taskmanager.memory.network.max", "64m");
            cluster = new MiniCluster(new MiniClusterConfiguration.Builder().setConfiguration(memory)
                    .withRandomPorts().setNumTaskManagers(1).setNumSlotsPerTaskManager(SLOTS).build());
            cluster.start();
        }
        Configuration settings = new Configuration();
        settings.setString("execution.target", "remote");
        settings.setString("rest.address", "localhost");
        settings.setString("rest.port", String.valueOf(cluster.getRestAddress().get().getPort()));
        settings.setString("parallelism.default", "1");
        settings.setString("restart-strategy.type", "none");
        settings.setString("table.local-time-zone", zone);
        return settings;
    }
}
