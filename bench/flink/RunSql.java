import java.io.FileReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

/** Runs the statements of a SQL file in this process and returns when its INSERT ends: `java RunSql SETTINGS SQL`. */
public class RunSql {
    public static void main(String[] args) {
        try {
            run(args);
            System.exit(0);
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
    }

    static void run(String[] args) throws Exception {
        Properties properties = new Properties();
        try (FileReader file = new FileReader(args[0])) {
            properties.load(file);
        }
        Configuration settings = new Configuration();
        properties.stringPropertyNames().forEach(name -> settings.setString(name, properties.getProperty(name)));
        TableEnvironment env = TableEnvironment.create(
                EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build());
        String text = Files.readString(Path.of(args[1])).replaceAll("(?m)^\\s*--.*$", "");
        for (String statement : text.split(";\\s*(\\n|$)")) {
            if (!statement.isBlank()) {
                var result = env.executeSql(statement);
                if (statement.stripLeading().startsWith("INSERT")) {
                    result.await();
                }
            }
        }
    }
}
